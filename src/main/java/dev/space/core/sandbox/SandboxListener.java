package dev.space.core.sandbox;

/// Someone who has to know what becomes of sandboxes, such as the sessions that end with them.
@FunctionalInterface
public interface SandboxListener {

  /// Called after the change was committed, in the thread that made it; it must be quick and not
  /// throw. Changes of one sandbox may be told out of order: the record's `rev` says which is
  /// newer.
  void changed(SandboxState before, Sandbox now);
}
