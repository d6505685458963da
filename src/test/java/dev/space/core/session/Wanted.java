package dev.space.core.session;

import dev.space.core.session.CreateSession.Command;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/// Sessions as tests ask for them.
final class Wanted {

  private Wanted() {}

  static CreateSession request(Command command) {
    return new CreateSession(
        command,
        Map.of(),
        Optional.empty(),
        Optional.empty(),
        true,
        Optional.empty(),
        Optional.empty(),
        Optional.empty(),
        false,
        false);
  }

  static CreateSession started(Command command) {
    CreateSession r = request(command);
    return new CreateSession(
        r.command(),
        r.env(),
        r.cwd(),
        r.user(),
        r.stdin(),
        r.pty(),
        r.timeout(),
        r.tag(),
        true,
        r.keep());
  }

  static Command argv(String... words) {
    return new Command.Argv(List.of(words));
  }
}
