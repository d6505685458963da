package dev.space.core.sandbox;

/// What happens to a sandbox whose timeout or idle timeout ran out.
public enum OnTimeout {
  DELETE,
  SUSPEND
}
