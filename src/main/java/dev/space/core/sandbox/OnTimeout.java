package dev.space.core.sandbox;

/// What happens to a sandbox whose timeout or idle timeout ran out.
public enum OnTimeout {
  DELETE,
  SUSPEND,
  /// Suspended without its memory: a wake boots it from its disk.
  SUSPEND_DISK;

  /// Whether it is suspended, however.
  public boolean suspends() {
    return this != DELETE;
  }
}
