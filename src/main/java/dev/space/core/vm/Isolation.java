package dev.space.core.vm;

/// What keeps guests apart on this node.
public enum Isolation {
  FIRECRACKER("firecracker"),
  QEMU_KVM("qemu-kvm"),
  QEMU_TCG("qemu-tcg"),
  /// No VM at all: the driver for tests and benchmarks of the control plane.
  SIMULATED("simulated");

  private final String wire;

  Isolation(String wire) {
    this.wire = wire;
  }

  /// The name as it stands in answers.
  public String wire() {
    return wire;
  }
}
