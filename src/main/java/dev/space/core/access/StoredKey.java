package dev.space.core.access;

import java.time.Instant;
import java.util.Optional;

/// An API key as it is recorded; the key itself is not.
///
/// @param id public, for logs and lists
/// @param name the owner's own name for it
/// @param role `admin` for now
/// @param hash SHA-256 of the key, lower-case hex
public record StoredKey(
    String id,
    String project,
    String name,
    String role,
    String hash,
    Instant createdAt,
    Optional<Instant> revokedAt) {}
