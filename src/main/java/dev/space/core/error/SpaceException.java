package dev.space.core.error;

/// Carries a [Problem]. The only exception that crosses package boundaries on purpose; anything
/// else that reaches the edge is a defect and is reported as [ErrorCode#INTERNAL].
public final class SpaceException extends RuntimeException {

  private final transient Problem problem;

  public SpaceException(Problem problem) {
    super(problem.oneLine());
    this.problem = problem;
  }

  public SpaceException(Problem problem, Throwable source) {
    super(problem.oneLine(), source);
    this.problem = problem;
  }

  public Problem problem() {
    return problem;
  }

  public ErrorCode code() {
    return problem.code();
  }
}
