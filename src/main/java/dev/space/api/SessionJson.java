package dev.space.api;

import dev.space.core.guest.ProcessExit;
import dev.space.core.session.Session;
import java.util.List;
import java.util.Optional;

/// A session in answers. Its environment is not there: it may hold secrets.
record SessionJson(
    String id,
    String sandboxId,
    List<String> argv,
    Optional<String> cwd,
    Optional<String> user,
    boolean stdin,
    Optional<PtyJson> pty,
    Optional<String> timeout,
    String tag,
    boolean keep,
    String state,
    Optional<Integer> pid,
    Optional<ExitJson> exit,
    Optional<ProblemBodyJson> error,
    String createdAt,
    Optional<String> startedAt,
    Optional<String> endedAt) {

  record PtyJson(int cols, int rows) {}

  /// @param code absent when a signal ended the process
  /// @param signal absent when it exited by itself
  record ExitJson(
      Optional<Integer> code, Optional<Integer> signal, boolean coreDumped, boolean timedOut) {
    static ExitJson of(ProcessExit exit) {
      boolean signalled = exit.signal() != 0;
      return new ExitJson(
          signalled ? Optional.empty() : Optional.of(exit.code()),
          signalled ? Optional.of(exit.signal()) : Optional.empty(),
          exit.coreDumped(),
          exit.timedOut());
    }
  }

  static SessionJson of(Session s) {
    return new SessionJson(
        s.id(),
        s.sandboxId(),
        s.spec().argv(),
        s.spec().cwd(),
        s.spec().user(),
        s.spec().stdin(),
        s.spec().pty().map(p -> new PtyJson(p.cols(), p.rows())),
        s.spec().timeout().map(Calls::text),
        s.spec().tag(),
        s.keep(),
        s.state().wire(),
        s.pid(),
        s.exit().map(ExitJson::of),
        s.error().map(ProblemBodyJson::of),
        Calls.text(s.createdAt()),
        s.startedAt().map(Calls::text),
        s.endedAt().map(Calls::text));
  }
}
