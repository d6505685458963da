package dev.space.api;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.guest.ProcessSpec.PtySize;
import dev.space.core.session.CreateSession;
import java.util.List;
import java.util.Map;
import java.util.Optional;

record CreateSessionJson(
    Optional<String> command,
    Optional<List<String>> argv,
    Optional<Map<String, String>> env,
    Optional<String> cwd,
    Optional<String> user,
    Optional<Boolean> stdin,
    Optional<PtyRequestJson> pty,
    Optional<String> timeout,
    Optional<String> tag,
    Optional<Boolean> start,
    Optional<Boolean> keep) {

  record PtyRequestJson(Optional<Integer> cols, Optional<Integer> rows) {}

  private static final int COLS_DEFAULT = 80;
  private static final int ROWS_DEFAULT = 24;

  CreateSession request() {
    return new CreateSession(
        whatToRun(),
        Texts.map("env", env),
        cwd,
        user,
        stdin.orElse(false),
        pty.map(p -> new PtySize(p.cols().orElse(COLS_DEFAULT), p.rows().orElse(ROWS_DEFAULT))),
        timeout.map(text -> Calls.duration("timeout", text)).filter(d -> !d.isZero()),
        tag,
        start.orElse(false),
        keep.orElse(false));
  }

  private CreateSession.Command whatToRun() {
    if (command.isPresent() == argv.isPresent()) {
      throw Problem.of(
              ErrorCode.INVALID_REQUEST,
              command.isPresent()
                  ? "Both 'command' and 'argv' are given"
                  : "Neither 'command' nor 'argv' is given")
          .remedy(
              "Give 'argv', a list of words that no shell reads, or 'command', a line for the"
                  + " shell.")
          .toException();
    }
    if (command.isPresent()) {
      return new CreateSession.Command.Shell(command.get());
    }
    return new CreateSession.Command.Argv(Texts.list("argv", argv.orElseThrow()));
  }
}
