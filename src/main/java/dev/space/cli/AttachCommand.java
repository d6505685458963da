package dev.space.cli;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import java.time.Duration;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;
import tools.jackson.databind.JsonNode;

@Command(
    name = "attach",
    description = {
      "Attach to a session that runs or has ended: its output so far, then what comes.",
      "A terminal is left with a new line and ~. ; its session goes on."
    },
    footerHeading = "%nExamples:%n",
    footer = {"  space attach ID SESSION"})
final class AttachCommand extends SessionCommand {

  private static final Duration CALL_TIME = Duration.ofSeconds(30);

  private final Root root;

  @Option(
      names = "--after",
      defaultValue = "0",
      paramLabel = "N",
      description = "Begin after this event of its output (default 0: all that is kept).")
  private long after;

  @Parameters(index = "0", paramLabel = "ID", description = "The sandbox.")
  private String id = "";

  @Parameters(index = "1", paramLabel = "SESSION", description = "The session.")
  private String sessionId = "";

  AttachCommand(Root root) {
    this.root = root;
  }

  @Override
  public Integer call() {
    Api api = root.api();
    String session = "/v1/sandboxes/" + Api.part(id) + "/sessions/" + Api.part(sessionId);
    JsonNode ticket = api.json(api.request("POST", session + "/attach").within(CALL_TIME));
    Surroundings surroundings = root.surroundings();
    if (!ticket.path("session").path("pty").isMissingNode()) {
      return new TerminalRun(_ -> ticket, id, after, surroundings).run();
    }
    try {
      return new SessionStream(
              ticket.path("attach_url").asString(),
              ticket.path("attach_token").asString(),
              surroundings.out(),
              surroundings.err())
          .from(after)
          .follow()
          .status();
    } catch (SessionStream.ReaderGoneException e) {
      return ExitStatus.OK;
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw Problem.of(ErrorCode.CANCELLED, "Interrupted").toException(e);
    }
  }
}
