package dev.space.node;

/// Told of every place at which the death of the daemon would leave something half done. Does
/// nothing in production; tests die here.
@FunctionalInterface
public interface FailPoints {

  /// The places, in the order in which they are passed.
  enum Point {
    /// Any write of a journal entry, before it.
    JOURNAL_WRITE,
    BASE_BOOTED,
    BASE_SAVED,
    BASE_BEFORE_PUBLISH,
    CREATE_AFTER_JOURNAL,
    CREATE_AFTER_DISK,
    CREATE_AFTER_RESTORE,
    CREATE_AFTER_RESUME,
    CREATE_AFTER_ADOPT,
    WARM_RESTORED,
    WARM_CLAIMED,
    PAUSE_AFTER_STOP,
    RESUME_AFTER_START,
    SUSPEND_AFTER_JOURNAL,
    SUSPEND_AFTER_SYNC,
    SUSPEND_AFTER_STOP,
    SUSPEND_AFTER_SAVE,
    SUSPEND_AFTER_PUBLISH,
    SUSPEND_BEFORE_KILL,
    WAKE_AFTER_JOURNAL,
    WAKE_AFTER_RESTORE,
    WAKE_AFTER_RESUME,
    WAKE_AFTER_ADOPT,
    REBOOT_BOOTED,
    REBOOT_SAVED,
    REBOOT_RESTORED,
    WAKE_BEFORE_CLEANUP,
    SNAPSHOT_AFTER_STOP,
    SNAPSHOT_AFTER_SAVE,
    SNAPSHOT_AFTER_RESUME,
    SNAPSHOT_BEFORE_PUBLISH,
    DELETE_AFTER_JOURNAL,
    DELETE_AFTER_KILL,
    DELETE_HALF_REMOVED,
    /// Something happened by itself: a guest ended, a link broke, a pool has room.
    BACKGROUND
  }

  void reach(Point point);

  FailPoints NONE = point -> {};
}
