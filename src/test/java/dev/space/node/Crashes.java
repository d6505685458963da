package dev.space.node;

import java.util.function.Predicate;

/// Fail points at which a daemon dies. After its death every other one is deadly too, so that
/// nothing it left running in this process can do anything more.
final class Crashes implements FailPoints {

  /// Thrown instead of a death; no code of the node catches it.
  static final class Death extends Error {
    private static final long serialVersionUID = 1;

    Death(Point point) {
      super("died at " + point);
    }
  }

  private final Predicate<Point> deadly;
  private volatile boolean dead;

  private Crashes(Predicate<Point> deadly) {
    this.deadly = deadly;
  }

  static Crashes at(Predicate<Point> deadly) {
    return new Crashes(deadly);
  }

  boolean dead() {
    return dead;
  }

  /// The end of the daemon from outside.
  void kill() {
    dead = true;
  }

  @Override
  public void reach(Point point) {
    if (!dead && deadly.test(point)) {
      dead = true;
    }
    if (dead) {
      throw new Death(point);
    }
  }
}
