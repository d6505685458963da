package dev.space.cli;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import java.io.OutputStream;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.node.ArrayNode;
import tools.jackson.databind.node.ObjectNode;

/// One command in a sandbox, from its creation as a session to its exit status.
///
/// @param argv what is run; no shell ever reads it
/// @param stdin whether standard input is passed on
record CommandRun(
    List<String> argv,
    Map<String, String> env,
    Optional<String> cwd,
    Optional<String> user,
    boolean stdin,
    Optional<Duration> timeout) {

  /// SIGPIPE's number: what a command gets whose reader has gone.
  private static final int SIGPIPE = 13;

  ObjectNode request() {
    ObjectNode body = Json.object();
    ArrayNode words = body.putArray("argv");
    argv.forEach(words::add);
    if (!env.isEmpty()) {
      ObjectNode variables = body.putObject("env");
      env.forEach(variables::put);
    }
    cwd.ifPresent(dir -> body.put("cwd", dir));
    user.ifPresent(name -> body.put("user", name));
    body.put("stdin", stdin);
    timeout.ifPresent(time -> body.put("timeout", Durations.text(time)));
    return body;
  }

  /// Runs the command with the streams of this process.
  ///
  /// @return the exit status for this process
  int runIn(Api api, String sandboxId, Surroundings surroundings) {
    JsonNode ticket = api.post("/v1/sandboxes/" + Api.part(sandboxId) + "/sessions", request());
    String sessionId = ticket.path("session").path("id").asString();
    String url = ticket.path("attach_url").asString();
    String token = ticket.path("attach_token").asString();
    String session = "/v1/sandboxes/" + Api.part(sandboxId) + "/sessions/" + Api.part(sessionId);
    OutputStream err = surroundings.err();
    SessionStream stream = new SessionStream(url, token, surroundings.out(), err);
    try (OnExit ended = OnExit.of(() -> api.delete(session))) {
      if (stdin) {
        new SessionInput(surroundings.in(), url, token).start();
      }
      int status = stream.follow().status();
      ended.forget();
      return status;
    } catch (SessionStream.ReaderGoneException e) {
      return ExitStatus.SIGNAL_BASE + SIGPIPE;
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw Problem.of(ErrorCode.CANCELLED, "Interrupted").toException(e);
    }
  }
}
