package dev.space.core.operation;

/// Makes a POST safe to repeat: the same key with the same fingerprint gives the same answer, with
/// another fingerprint it is refused.
///
/// @param key as the caller chose it, 1 to 255 printable characters, no spaces
/// @param fingerprint hash of method, path and body
public record IdempotencyKey(String key, String fingerprint) {}
