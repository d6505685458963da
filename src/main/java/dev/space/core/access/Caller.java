package dev.space.core.access;

/// Who makes a call. Every service takes it and answers only with what belongs to its project.
///
/// @param keyId the API key's public id, for logs
/// @param requestId the request's id, which stands in every error and log line about it
public record Caller(String project, String keyId, String requestId) {

  /// The project of the bootstrap key.
  public static final String DEFAULT_PROJECT = "default";
}
