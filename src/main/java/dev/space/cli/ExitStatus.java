package dev.space.cli;

import dev.space.core.error.ErrorCode;

/// Exit statuses of the command line; `docs/cli.md` lists them.
final class ExitStatus {

  static final int OK = 0;
  static final int FAILURE = 1;
  static final int USAGE = 2;

  /// `run` and `exec` only: something beside the command failed.
  static final int INFRASTRUCTURE = 125;

  /// `run` and `exec` only: the command is there but can't be run.
  static final int NOT_EXECUTABLE = 126;

  /// `run` and `exec` only: there is no such command.
  static final int NOT_FOUND = 127;

  /// Added to the number of the signal that ended the command.
  static final int SIGNAL_BASE = 128;

  private ExitStatus() {}

  /// The status when a command in a sandbox could not be run to its end.
  static int ofSession(ErrorCode code) {
    return switch (code) {
      case COMMAND_NOT_FOUND -> NOT_FOUND;
      case PERMISSION_DENIED, NOT_A_FILE -> NOT_EXECUTABLE;
      default -> INFRASTRUCTURE;
    };
  }
}
