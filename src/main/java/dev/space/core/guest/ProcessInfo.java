package dev.space.core.guest;

import java.time.Instant;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/// A process as its guest knows it.
///
/// @param lastSeq number of its last output event
/// @param stdinOffset how many bytes of input it has taken
/// @param existed whether a start found it there already
public record ProcessInfo(
    String id,
    int pid,
    Optional<ProcessExit> exit,
    List<String> argv,
    Map<String, String> env,
    String cwd,
    String user,
    String tag,
    boolean pty,
    Instant startedAt,
    long lastSeq,
    long stdinOffset,
    boolean existed) {}
