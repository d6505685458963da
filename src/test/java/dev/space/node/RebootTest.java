package dev.space.node;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.error.SpaceException;
import dev.space.core.guest.ProcessSpec;
import dev.space.core.node.LaunchSpec;
import dev.space.core.node.NodeRuntime.Progress;
import dev.space.vmm.simulated.SimulatedHost;
import dev.space.vmm.simulated.SimulatedHost.Step;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// Sandboxes that are suspended without their memory, and those that are booted although it is
/// there.
class RebootTest {

  @TempDir Path dir;
  Bed bed;
  Node node;

  @BeforeEach
  void setUp() {
    bed = new Bed(dir);
    node = bed.node();
  }

  @Test
  void aDiskThatWasSuspendedAloneIsBooted() {
    String id = Bed.create(node);
    Bed.sh(node, id, "echo kept > /root/f");
    node.guest(id).start(ProcessSpec.of("sleep", List.of("sleep", "1000")));
    node.suspend(id, false);
    assertThat(bed.vm(id).resolve("saved/state")).doesNotExist();
    assertThat(bed.processes()).isEmpty();
    for (int round = 0; round < 2; round++) {
      node.wake(id, Bed.spec(id));
      assertThat(Bed.sh(node, id, "cat /root/f")).startsWith("kept\n");
      assertThat(Bed.sh(node, id, "hostname")).isEqualTo(id + "\n");
      assertThat(node.guest(id).processes()).noneMatch(p -> p.id().equals("sleep"));
      // What was booted suspends and wakes as everything else does, however often.
      node.suspend(id);
      node.wake(id, Bed.spec(id));
      Bed.sh(node, id, "echo " + round + " >> /root/f");
      node.pause(id);
      node.suspend(id, false);
    }
    node.wake(id, Bed.spec(id));
    assertThat(Bed.sh(node, id, "cat /root/f")).isEqualTo("kept\n0\n1\n");
    node.snapshot(id, "of-the-booted");
    String copy = Bed.id();
    node.create(Bed.spec(copy, new LaunchSpec.Source.Snapshot("of-the-booted")), Progress.NONE);
    assertThat(Bed.sh(node, copy, "cat /root/f")).isEqualTo("kept\n0\n1\n");
    assertThat(boots(id)).hasSize(1);
  }

  @Test
  void aSuspendedGuestCanBeBootedInsteadOfGoingOn() {
    String id = Bed.create(node);
    node.suspend(id, false);
    node.wake(id, Bed.spec(id));
    Bed.sh(node, id, "echo kept > /root/f");
    node.guest(id).start(ProcessSpec.of("sleep", List.of("sleep", "1000")));
    node.suspend(id);
    List<Path> before = boots(id);
    failing(Step.BOOT, id);
    assertThatThrownBy(() -> node.wake(id, Bed.spec(id), false))
        .isInstanceOfSatisfying(
            SpaceException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.VMM_FAILED));
    bed.host.inject(SimulatedHost.Fault.NONE);
    assertThat(boots(id)).isEqualTo(before);
    node.wake(id, Bed.spec(id));
    assertThat(node.guest(id).processes()).anyMatch(p -> p.id().equals("sleep"));
    node.suspend(id);
    node.wake(id, Bed.spec(id), false);
    assertThat(Bed.sh(node, id, "cat /root/f")).isEqualTo("kept\n");
    assertThat(node.guest(id).processes()).noneMatch(p -> p.id().equals("sleep"));
    assertThat(boots(id)).hasSize(1).isNotEqualTo(before);
  }

  @Test
  void aDiskThatCannotBeBootedNowStaysSuspended() {
    String id = Bed.create(node);
    Bed.sh(node, id, "echo kept > /root/f");
    node.suspend(id, false);
    for (Step step : List.of(Step.BOOT, Step.CONNECT, Step.ADOPT, Step.SAVE, Step.RESTORE)) {
      failing(step, id);
      assertThatThrownBy(() -> node.wake(id, Bed.spec(id))).isInstanceOf(SpaceException.class);
      bed.host.inject(SimulatedHost.Fault.NONE);
      assertThat(bed.processes()).as("after a failed %s", step).isEmpty();
      assertThat(boots(id)).isEmpty();
    }
    node.close();
    node = bed.node();
    assertThat(node.recover(java.util.Set.of(Bed.spec(id))).suspended()).containsExactly(id);
    node.wake(id, Bed.spec(id));
    assertThat(Bed.sh(node, id, "cat /root/f")).isEqualTo("kept\n");
  }

  @Test
  void aSuspendThatFailsLeavesThePausedPausedAndTheRunningRunning() {
    String id = Bed.create(node);
    failing(Step.PAUSE, id);
    assertThatThrownBy(() -> node.suspend(id, false)).isInstanceOf(SpaceException.class);
    bed.host.inject(SimulatedHost.Fault.NONE);
    assertThat(Bed.sh(node, id, "echo on")).isEqualTo("on\n");
    node.pause(id);
    failing(Step.ADOPT, id);
    assertThatThrownBy(() -> node.suspend(id, false)).isInstanceOf(SpaceException.class);
    bed.host.inject(SimulatedHost.Fault.NONE);
    assertThatThrownBy(() -> node.guest(id)).isInstanceOf(SpaceException.class);
    node.resume(id, Bed.spec(id));
    assertThat(Bed.sh(node, id, "echo on")).isEqualTo("on\n");
  }

  private void failing(Step step, String id) {
    bed.host.inject(
        (at, spec) -> {
          if (at == step && spec.id().equals(id)) {
            throw Problem.of(ErrorCode.VMM_FAILED, "planned").toException();
          }
        });
  }

  private List<Path> boots(String id) {
    return Folders.children(bed.vm(id)).stream()
        .filter(path -> path.getFileName().toString().startsWith("boot-"))
        .toList();
  }
}
