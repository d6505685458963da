package dev.space.api;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.guest.Guest;
import dev.space.core.node.Capacity;
import dev.space.core.node.LaunchSpec;
import dev.space.core.node.NodeRuntime;
import dev.space.core.vm.Isolation;
import dev.space.core.vm.VmStats;
import java.util.Set;
import java.util.concurrent.atomic.AtomicInteger;

/// A node whose every verb succeeds at once and does nothing.
final class FakeNode implements NodeRuntime {
  private final AtomicInteger vms = new AtomicInteger();

  @Override
  public String name() {
    return "fake";
  }

  @Override
  public Isolation isolation() {
    return Isolation.SIMULATED;
  }

  @Override
  public Capacity capacity() {
    return new Capacity(100, vms.get(), 1L << 34, 0, 1L << 40, 1L << 39, 0);
  }

  @Override
  public void create(LaunchSpec spec, Progress progress) {
    vms.incrementAndGet();
  }

  @Override
  public void pause(String sandboxId) {}

  @Override
  public void resume(String sandboxId, LaunchSpec spec) {}

  @Override
  public void suspend(String sandboxId, boolean memory) {}

  @Override
  public void wake(String sandboxId, LaunchSpec spec, boolean memory) {}

  @Override
  public long snapshot(String sandboxId, String snapshotId) {
    return 4096;
  }

  @Override
  public void deleteSnapshot(String snapshotId) {}

  @Override
  public void delete(String sandboxId) {}

  @Override
  public Guest guest(String sandboxId) {
    throw Problem.of(ErrorCode.ILLEGAL_STATE, "The fake node has no guests").toException();
  }

  @Override
  public VmStats stats(String sandboxId) {
    throw Problem.of(ErrorCode.ILLEGAL_STATE, "The fake node has no guests").toException();
  }

  @Override
  public Recovered recover(Set<LaunchSpec> known) {
    return new Recovered(Set.of(), Set.of(), Set.of());
  }

  @Override
  public void prepare(String templateDigest, Progress progress) {}

  @Override
  public void deleteTemplate(String templateDigest) {}

  @Override
  public void onExit(ExitListener listener) {}

  @Override
  public void close() {}
}
