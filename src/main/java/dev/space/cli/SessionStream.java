package dev.space.cli;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.error.SpaceException;
import dev.space.wire.EventReader;
import dev.space.wire.WireRequest;
import dev.space.wire.WireResponse;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.Optional;
import tools.jackson.databind.JsonNode;

/// The output of a session, written out byte by byte as it comes. A lost connection is taken up
/// again after the last event that was seen.
final class SessionStream {

  /// How a session's process ended.
  ///
  /// @param code exit code, when it exited
  /// @param signal number of the signal that ended it, else 0
  record End(int code, int signal) {
    int status() {
      return signal > 0 ? ExitStatus.SIGNAL_BASE + signal : code;
    }
  }

  /// Standard output or error of the command line can't be written to any more.
  static final class ReaderGoneException extends IOException {
    private static final long serialVersionUID = 1;

    ReaderGoneException(IOException cause) {
      super(cause);
    }
  }

  private final String url;
  private final String token;
  private final OutputStream out;
  private final OutputStream err;
  private Optional<String> lastSeen = Optional.empty();

  /// @param url the session's attach URL
  /// @param token opens this session alone
  SessionStream(String url, String token, OutputStream out, OutputStream err) {
    this.url = url;
    this.token = token;
    this.out = out;
    this.err = err;
  }

  /// Begins after an event.
  SessionStream from(long after) {
    lastSeen = after > 0 ? Optional.of(Long.toString(after)) : Optional.empty();
    return this;
  }

  /// Reads to the end of the session.
  ///
  /// @throws ReaderGoneException when what is written is not read any more
  End follow() throws ReaderGoneException, InterruptedException {
    Retries retries = new Retries();
    while (true) {
      Optional<String> before = lastSeen;
      try {
        return readOnce();
      } catch (ReaderGoneException e) {
        throw e;
      } catch (IOException | SpaceException e) {
        if (!retries.again(e, !lastSeen.equals(before))) {
          throw e instanceof SpaceException known ? known : lost((IOException) e);
        }
      }
    }
  }

  private SpaceException lost(IOException e) {
    return Problem.of(ErrorCode.SANDBOX_DIED, "The session's output was lost")
        .because(e)
        .remedy("The session goes on if its sandbox lives: space attach ID SESSION")
        .toException(e);
  }

  private End readOnce() throws IOException {
    WireRequest request =
        WireRequest.of("GET", Api.target(url))
            .header("Authorization", "Bearer " + token)
            .header("Accept", "text/event-stream")
            .silentFor(Api.SILENCE);
    if (lastSeen.isPresent()) {
      request = request.header("Last-Event-ID", lastSeen.get());
    }
    try (WireResponse response = Api.openAt(url, request)) {
      EventReader events = response.events();
      while (true) {
        EventReader.Event event =
            events
                .next()
                .orElseThrow(() -> new IOException("the stream ended before the session did"));
        Optional<End> end = take(event);
        if (event.id().isPresent()) {
          lastSeen = event.id();
        }
        if (end.isPresent()) {
          return end.get();
        }
      }
    }
  }

  private Optional<End> take(EventReader.Event event) throws ReaderGoneException {
    JsonNode data = Json.read(event.data());
    switch (event.name()) {
      case "stdout", "pty" -> write(out, bytes(data));
      case "stderr" -> write(err, bytes(data));
      case "gap" -> write(err, gap(data));
      case "exit" -> {
        return Optional.of(new End(data.path("code").asInt(0), data.path("signal").asInt(0)));
      }
      case "error" -> throw Api.problem(data).toException();
      default -> {
        // "started", and whatever later versions add.
      }
    }
    return Optional.empty();
  }

  private static byte[] gap(JsonNode data) {
    return ("\nspace: " + data.path("bytes").asLong(0) + " bytes of output were not kept\n")
        .getBytes(StandardCharsets.UTF_8);
  }

  private static byte[] bytes(JsonNode data) {
    return data.has("base64")
        ? Base64.getDecoder().decode(data.path("base64").asString())
        : data.path("text").asString("").getBytes(StandardCharsets.UTF_8);
  }

  private static void write(OutputStream to, byte[] bytes) throws ReaderGoneException {
    try {
      to.write(bytes);
      to.flush();
    } catch (IOException e) {
      throw new ReaderGoneException(e);
    }
  }
}
