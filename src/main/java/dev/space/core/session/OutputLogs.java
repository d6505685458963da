package dev.space.core.session;

/// The output logs of a node.
public interface OutputLogs {

  /// Opens a session's log, or makes it. One open log for a session at a time.
  OutputLog open(String sandboxId, String sessionId);

  /// The epoch of a session's tokens that was last written; 0 when none was. Reads no database.
  int epoch(String sandboxId, String sessionId);

  /// Records the epoch of a session's tokens durably.
  void epoch(String sandboxId, String sessionId, int epoch);

  /// Removes what is kept for one session.
  void delete(String sandboxId, String sessionId);

  /// Removes everything kept for a sandbox's sessions.
  void delete(String sandboxId);
}
