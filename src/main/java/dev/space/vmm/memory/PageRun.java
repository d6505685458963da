package dev.space.vmm.memory;

/// Consecutive pages.
///
/// @param first number of the first page, counted from the start of the memory
/// @param count how many, at least 1
public record PageRun(long first, long count) {

  /// Size of a page in bytes, on every host this runs on.
  public static final int PAGE_BYTES = 4096;
}
