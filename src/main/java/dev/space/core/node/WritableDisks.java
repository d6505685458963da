package dev.space.core.node;

import java.nio.file.Path;

/// How a node gets the writable disks of its VMs. Failures are `SpaceException`s with DISK_FULL
/// when that is the reason.
public interface WritableDisks {

  /// Makes an empty ext4 image, sparse on the host.
  ///
  /// @param target doesn't exist yet
  void makePristine(Path target, int mib);

  /// Copies an image that nobody writes to: as a reflink where the file system can, else sparsely.
  ///
  /// @param target doesn't exist yet
  void copy(Path source, Path target);

  /// Bytes that a file occupies, holes left out.
  long occupied(Path file);
}
