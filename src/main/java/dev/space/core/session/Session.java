package dev.space.core.session;

import dev.space.core.error.Problem;
import dev.space.core.guest.ProcessExit;
import dev.space.core.guest.ProcessSpec;
import java.time.Instant;
import java.util.Optional;

/// One command in a sandbox. It outlives the connections that carry its input and output.
///
/// @param spec what is run; its id is the session's
/// @param shell whether a line for a shell was asked for: where the guest has no bash, sh takes its
///   place
/// @param keep whether it goes on when nobody is attached and is listed afterwards; always so in
///   the guest, this is the caller's word about what may be cleaned up
/// @param tokenEpoch attachment tokens of an older epoch are revoked
public record Session(
    String id,
    String project,
    String sandboxId,
    ProcessSpec spec,
    boolean shell,
    SessionState state,
    Optional<Integer> pid,
    Optional<ProcessExit> exit,
    Optional<Problem> error,
    boolean keep,
    int tokenEpoch,
    Instant createdAt,
    Optional<Instant> startedAt,
    Optional<Instant> endedAt,
    long rev) {}
