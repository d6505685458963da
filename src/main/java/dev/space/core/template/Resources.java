package dev.space.core.template;

/// The shape of a sandbox. Base snapshots and warm pools exist per template and shape.
///
/// @param vcpus virtual CPUs, 1 to 32
/// @param memoryMib guest memory in MiB, 128 to 1048576
/// @param diskMib size of the writable disk in MiB, 64 to 1048576; sparse on the host
public record Resources(int vcpus, int memoryMib, int diskMib) {

  /// What a template gets when its recipe names nothing.
  public static final Resources DEFAULT = new Resources(1, 512, 4096);

  /// Short text for file names, metric labels and messages, such as `1x512x4096`.
  public String shape() {
    return vcpus + "x" + memoryMib + "x" + diskMib;
  }
}
