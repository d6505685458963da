package dev.space.http;

import java.time.Duration;

/// Is told of every request that ended, for metrics. Must be quick and never throw.
@FunctionalInterface
public interface RequestObserver {
  /// @param listener name of the listener
  /// @param method upper case; `OTHER` for methods HTTP doesn't define, so that labels stay few
  /// @param route template of the route, or `none`; never a path, which could name a tenant's
  ///   things
  /// @param status as answered; 0 when the connection was aborted before there was one
  void ended(String listener, String method, String route, int status, Duration took);

  RequestObserver NONE = (listener, method, route, status, took) -> {};
}
