package dev.space.http;

/// What belongs to the request that the current thread works for.
public final class RequestScope {
  /// Bound while a handler runs; threads of structured scopes inherit it.
  public static final ScopedValue<String> REQUEST_ID = ScopedValue.newInstance();

  /// The key of the request id in log lines.
  public static final String MDC_KEY = "request_id";

  private RequestScope() {}
}
