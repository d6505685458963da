package dev.space.core.session;

import dev.space.core.error.Problem;
import dev.space.core.guest.ProcessExit;
import java.time.Instant;
import java.util.Optional;

/// The next revision of a session's record in the making.
final class SessionChange {

  private final Session old;
  private SessionState state;
  private Optional<Integer> pid;
  private Optional<ProcessExit> exit;
  private Optional<Problem> error;
  private Optional<Instant> startedAt;
  private Optional<Instant> endedAt;
  private int tokenEpoch;

  private SessionChange(Session old) {
    this.old = old;
    state = old.state();
    pid = old.pid();
    exit = old.exit();
    error = old.error();
    startedAt = old.startedAt();
    endedAt = old.endedAt();
    tokenEpoch = old.tokenEpoch();
  }

  static SessionChange of(Session old) {
    return new SessionChange(old);
  }

  SessionChange state(SessionState value) {
    state = value;
    return this;
  }

  SessionChange pid(int value) {
    pid = Optional.of(value);
    return this;
  }

  SessionChange exit(Optional<ProcessExit> value) {
    exit = value;
    return this;
  }

  SessionChange error(Optional<Problem> value) {
    error = value;
    return this;
  }

  SessionChange startedAt(Instant value) {
    startedAt = Optional.of(value);
    return this;
  }

  SessionChange endedAt(Instant value) {
    endedAt = Optional.of(value);
    return this;
  }

  SessionChange tokenEpoch(int value) {
    tokenEpoch = value;
    return this;
  }

  Session build() {
    return build(old.rev() + 1);
  }

  Session build(long rev) {
    return new Session(
        old.id(),
        old.project(),
        old.sandboxId(),
        old.spec(),
        old.shell(),
        state,
        pid,
        exit,
        error,
        old.keep(),
        tokenEpoch,
        old.createdAt(),
        startedAt,
        endedAt,
        rev);
  }
}
