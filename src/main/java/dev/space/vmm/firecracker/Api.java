package dev.space.vmm.firecracker;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.error.SpaceException;
import dev.space.wire.Endpoint;
import dev.space.wire.KeptConnection;
import dev.space.wire.KeptConnection.Answer;
import dev.space.wire.WireException;
import java.io.IOException;
import java.nio.channels.SocketChannel;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicLong;
import jdk.net.ExtendedSocketOptions;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import tools.jackson.core.JacksonException;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

/// The API of one Firecracker process over one connection that is kept. Its end is the end of the
/// process.
///
/// What became of a change that wasn't answered is unknown, so it is never asked again: the process
/// is ended.
final class Api implements AutoCloseable {

  private static final Logger LOG = LoggerFactory.getLogger(Api.class);

  private static final JsonMapper JSON = JsonMapper.builder().build();
  private static final int OK = 200;
  private static final int NO_CONTENT = 204;
  private static final int WORDS_MAX = 2000;

  private final KeptConnection connection;
  private final Runnable end;
  private final AtomicLong nanos = new AtomicLong();

  private Api(KeptConnection connection, Runnable end) {
    this.connection = connection;
    this.end = end;
  }

  /// Connects to a socket that exists.
  ///
  /// @param user whom the process runs as, when that isn't who the daemon runs as: its directory is
  ///   its own then, and it could have laid a link to another's socket there
  /// @param end ends the process
  static Api connect(Path socket, Optional<Integer> user, Runnable end) throws IOException {
    KeptConnection connection = KeptConnection.open(new Endpoint.Unix(socket));
    boolean done = false;
    try {
      requirePeer(connection.channel(), user);
      done = true;
      return new Api(connection, end);
    } finally {
      if (!done) {
        connection.close();
      }
    }
  }

  /// Asks the kernel who listens at the other end of a unix socket.
  static void requirePeer(SocketChannel channel, Optional<Integer> user) throws IOException {
    if (user.isEmpty()) {
      return;
    }
    String peer = channel.getOption(ExtendedSocketOptions.SO_PEERCRED).user().getName();
    if (!peer.equals(Integer.toString(user.get()))) {
      throw new IOException("user " + peer + " listens there instead of " + user.get());
    }
  }

  CompletableFuture<Void> closed() {
    return connection.closed();
  }

  /// Time spent waiting for answers so far.
  long waitedNanos() {
    return nanos.get();
  }

  /// @throws SpaceException VMM_FAILED when it refuses, is gone, or doesn't answer in time
  void put(String path, Map<String, ?> body, Duration deadline) {
    change("PUT", path, body, deadline);
  }

  void patch(String path, Map<String, ?> body, Duration deadline) {
    change("PATCH", path, body, deadline);
  }

  private void change(String method, String path, Map<String, ?> body, Duration deadline) {
    String what = method + " " + path;
    Answer answer =
        exchange(what, method, path, Optional.of(JSON.writeValueAsString(body)), deadline);
    if (answer.status() != NO_CONTENT && answer.status() != OK) {
      throw refused(what, answer);
    }
    if (answer.headers().first("Deprecation").isPresent()) {
      LOG.warn("Firecracker calls something in '{}' deprecated", what);
    }
  }

  JsonNode get(String path, Duration deadline) {
    String what = "GET " + path;
    Answer answer = exchange(what, "GET", path, Optional.empty(), deadline);
    if (answer.status() != OK) {
      throw refused(what, answer);
    }
    try {
      return JSON.readTree(answer.text());
    } catch (JacksonException e) {
      throw failed(what, "its answer is no JSON").toException(e);
    }
  }

  private Answer exchange(
      String what, String method, String path, Optional<String> json, Duration deadline) {
    long start = System.nanoTime();
    try {
      return connection.exchange(method, path, json, deadline);
    } catch (WireException e) {
      if (e.fault() == WireException.Fault.TIMED_OUT) {
        LOG.error("Firecracker doesn't answer '{}': it is ended", what);
        end.run();
        throw failed(what, "no answer within " + deadline.toMillis() + " ms; it was ended")
            .toException(e);
      }
      throw failed(what, "the process is gone").toException(e);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw Problem.of(ErrorCode.CANCELLED, "The wait for Firecracker was given up.")
          .toException(e);
    } finally {
      nanos.addAndGet(System.nanoTime() - start);
    }
  }

  private static SpaceException refused(String what, Answer answer) {
    String words = words(answer.text());
    boolean misused =
        words.contains("before starting the microVM")
            || words.contains("after starting the microVM");
    return misused
        ? Problem.of(ErrorCode.INTERNAL, "Firecracker was asked '" + what + "' at the wrong time.")
            .because(words)
            .toException()
        : failed(what, words).toException();
  }

  private static Problem failed(String what, String why) {
    return Problem.of(ErrorCode.VMM_FAILED, "Firecracker failed at '" + what + "'.").because(why);
  }

  /// Its own words; they are for people, nothing depends on them.
  private static String words(String body) {
    String text = body;
    try {
      JsonNode json = JSON.readTree(body);
      text = json.path("fault_message").asString(json.path("error").asString(body));
    } catch (JacksonException _) {
      // The text as it is, then.
    }
    return text.length() > WORDS_MAX ? text.substring(0, WORDS_MAX) : text;
  }

  @Override
  public void close() {
    connection.close();
  }
}
