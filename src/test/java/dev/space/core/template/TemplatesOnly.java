package dev.space.core.template;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.guest.Guest;
import dev.space.core.node.Capacity;
import dev.space.core.node.LaunchSpec;
import dev.space.core.node.NodeRuntime;
import dev.space.core.vm.Isolation;
import dev.space.core.vm.VmStats;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CopyOnWriteArrayList;

/// A node that knows templates and nothing else.
final class TemplatesOnly implements NodeRuntime {

  final List<String> prepared = new CopyOnWriteArrayList<>();
  final List<String> deleted = new CopyOnWriteArrayList<>();
  volatile boolean failing;

  @Override
  public void prepare(String templateDigest, Progress progress) {
    if (failing) {
      throw Problem.of(ErrorCode.VMM_FAILED, "the guest never answered").toException();
    }
    prepared.add(templateDigest);
  }

  @Override
  public void deleteTemplate(String templateDigest) {
    deleted.add(templateDigest);
  }

  @Override
  public String name() {
    return "templates";
  }

  private static UnsupportedOperationException none() {
    return new UnsupportedOperationException("this node has no sandboxes");
  }

  @Override
  public Isolation isolation() {
    throw none();
  }

  @Override
  public Capacity capacity() {
    throw none();
  }

  @Override
  public void create(LaunchSpec spec, Progress progress) {
    throw none();
  }

  @Override
  public void pause(String sandboxId) {
    throw none();
  }

  @Override
  public void resume(String sandboxId, LaunchSpec spec) {
    throw none();
  }

  @Override
  public void suspend(String sandboxId, boolean memory) {
    throw none();
  }

  @Override
  public void wake(String sandboxId, LaunchSpec spec, boolean memory) {
    throw none();
  }

  @Override
  public long snapshot(String sandboxId, String snapshotId) {
    throw none();
  }

  @Override
  public void deleteSnapshot(String snapshotId) {
    throw none();
  }

  @Override
  public void delete(String sandboxId) {
    throw none();
  }

  @Override
  public Guest guest(String sandboxId) {
    throw none();
  }

  @Override
  public VmStats stats(String sandboxId) {
    throw none();
  }

  @Override
  public Recovered recover(Set<LaunchSpec> known) {
    throw none();
  }

  @Override
  public void onExit(ExitListener listener) {
    throw none();
  }

  @Override
  public void close() {
    // It holds nothing.
  }
}
