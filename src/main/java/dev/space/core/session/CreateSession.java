package dev.space.core.session;

import dev.space.core.guest.ProcessSpec.PtySize;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/// A request for a session.
///
/// @param command what is run
/// @param stdin whether it has an input; a terminal always has
/// @param start start it at once instead of at the first attach
/// @param keep it goes on without its client and may leave processes behind
public record CreateSession(
    Command command,
    Map<String, String> env,
    Optional<String> cwd,
    Optional<String> user,
    boolean stdin,
    Optional<PtySize> pty,
    Optional<Duration> timeout,
    Optional<String> tag,
    boolean start,
    boolean keep) {

  /// What is run: words that no shell ever reads, or a line for the sandbox's shell.
  public sealed interface Command {
    record Argv(List<String> words) implements Command {}

    /// Run as `/bin/sh -c line` (bash where the template has it).
    record Shell(String line) implements Command {}
  }
}
