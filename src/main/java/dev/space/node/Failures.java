package dev.space.node;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.error.SpaceException;

/// Turns whatever went wrong in a verb into what its caller is told.
final class Failures {

  private Failures() {}

  static SpaceException of(Exception e, String what) {
    return e instanceof SpaceException known
        ? known
        : Problem.of(ErrorCode.INTERNAL, what).because(e.toString()).toException(e);
  }

  /// The same, but a machine that was deleted meanwhile is the reason for everything.
  static SpaceException of(Exception e, String what, Machine machine) {
    return machine.cancelled().isDone() ? machine.deleted() : of(e, what);
  }
}
