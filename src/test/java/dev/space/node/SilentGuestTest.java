package dev.space.node;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.SpaceException;
import dev.space.core.guest.Guest;
import dev.space.core.node.LaunchSpec;
import dev.space.core.node.NodeRuntime.Progress;
import dev.space.core.template.Resources;
import dev.space.guest.GrpcGuestConnector;
import dev.space.host.Command;
import dev.space.host.Processes;
import dev.space.image.BootFiles;
import dev.space.image.TestImages;
import dev.space.vmm.qemu.QemuSettings;
import dev.space.vmm.qemu.QemuVmm;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.SecureRandom;
import java.time.Duration;
import java.time.InstantSource;
import java.util.Map;
import java.util.Optional;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/// Guests whose agent says nothing: the create fails at its deadline, tells the end of the console,
/// and leaves nothing.
@Tag("vm")
@DisplayName("behaviour 25: a guest that is never ready")
class SilentGuestTest {

  private Path dir;

  @BeforeEach
  void open() throws Exception {
    dir = Files.createTempDirectory("space-mute-");
  }

  @AfterEach
  void close() {
    Folders.remove(dir);
  }

  private Path agentThatOnlyPrints() throws Exception {
    Path source = Files.createDirectory(dir.resolve("mute"));
    Files.writeString(source.resolve("go.mod"), "module mute\n\ngo 1.24\n");
    Files.writeString(
        source.resolve("main.go"),
        """
        package main

        import "time"

        func main() {
        	println("I say nothing more")
        	time.Sleep(time.Hour)
        }
        """);
    Processes.Finished built =
        new Processes(TestImages.withGo())
            .run(
                Command.of(Duration.ofMinutes(3), "go", "build", "-o", "agent", ".")
                    .in(source)
                    .env(Map.of("CGO_ENABLED", "0", "GOCACHE", dir.resolve("cache").toString())));
    assertThat(built.ok()).as(built.said()).isTrue();
    return source.resolve("agent");
  }

  private SpaceException failure(Path agent) {
    BootFiles boot = TestImages.boot(dir, agent);
    QemuVmm vmm =
        QemuVmm.open(
            new QemuSettings(
                "qemu-system-x86_64",
                boot.kernel(),
                boot.initramfs(),
                QemuSettings.Acceleration.TCG,
                dir,
                Optional.empty()),
            new Processes(System.getenv()));
    Duration boots = Duration.ofSeconds(25);
    Duration other = Duration.ofSeconds(5);
    NodeSettings settings =
        new NodeSettings("test", dir, 20, 16L << 30, 1, 0, other, boots, other, other, 1);
    Node node =
        new Node(
            settings,
            vmm,
            new GrpcGuestConnector(InstantSource.system(), new SecureRandom()),
            TestImages.images(),
            new HostDisks(TestImages.disks()),
            FailPoints.NONE);
    LaunchSpec spec =
        new LaunchSpec(
            "aaaaaaaaaaaaaaaaaaaa",
            new LaunchSpec.Source.Template(TestImages.digest()),
            new Resources(1, 256, 256),
            new Guest.Adoption(true, "a", "a", Map.of(), Optional.empty(), Optional.empty()));
    try {
      return catchThrowableOfType(SpaceException.class, () -> node.create(spec, Progress.NONE));
    } finally {
      node.close();
      assertThat(vmm.running(dir.resolve("vms"))).isEmpty();
      assertThat(Folders.children(dir.resolve("vms"))).isEmpty();
      assertThat(Folders.children(dir.resolve("base"))).isEmpty();
    }
  }

  @Test
  void anAgentThatNeverAnswersIsGivenUpWithItsConsole() throws Exception {
    SpaceException e = failure(agentThatOnlyPrints());
    assertThat(e.code()).isEqualTo(ErrorCode.GUEST_UNREACHABLE);
    assertThat(e.problem().cause().orElse("")).contains("I say nothing more");
    assertThat(e.problem().remedy()).isPresent();
  }

  @Test
  void anAgentThatIsNoProgramEndsTheGuestAndThatIsSaid() throws Exception {
    Path agent = Files.writeString(dir.resolve("agent"), "this is no program\n");
    SpaceException e = failure(agent);
    assertThat(e.problem().oneLine()).containsIgnoringCase("panic");
  }
}
