package dev.space.node;

import java.nio.file.Path;
import java.time.Duration;

/// What a node is told about itself.
///
/// @param name how it is called in records and answers
/// @param dataDir where it keeps everything, on one file system
/// @param vmsMax VMs at a time, warm ones included
/// @param memoryBytes guest memory that may be promised, before overcommit
/// @param memoryOvercommit how many times `memoryBytes` may be promised, at least 1
/// @param diskReserveBytes free space below which nothing new is made
/// @param guestDeadline how long a restored guest may take to answer
/// @param bootDeadline how long a booted guest may take to answer, and its template's start command
///   to be ready
/// @param linkDeadline how long a lost guest link may take to come back
/// @param recoveryBudget how long all adopted guests together may take to answer
/// @param poolFillers warm VMs that are made at the same time
public record NodeSettings(
    String name,
    Path dataDir,
    int vmsMax,
    long memoryBytes,
    double memoryOvercommit,
    long diskReserveBytes,
    Duration guestDeadline,
    Duration bootDeadline,
    Duration linkDeadline,
    Duration recoveryBudget,
    int poolFillers) {

  /// Waits and widths that suit most hosts.
  public static NodeSettings of(
      String name,
      Path dataDir,
      int vmsMax,
      long memoryBytes,
      double memoryOvercommit,
      long diskReserveBytes) {
    return new NodeSettings(
        name,
        dataDir,
        vmsMax,
        memoryBytes,
        memoryOvercommit,
        diskReserveBytes,
        Duration.ofSeconds(60),
        Duration.ofSeconds(180),
        Duration.ofSeconds(4),
        Duration.ofSeconds(60),
        1);
  }
}
