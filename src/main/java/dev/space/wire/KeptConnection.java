package dev.space.wire;

import dev.space.wire.WireException.Fault;
import java.io.IOException;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Optional;
import java.util.Queue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.locks.ReentrantLock;

/// An HTTP/1.1 connection that is kept for many requests, for servers that take few connections and
/// serve one request at a time.
///
/// A virtual thread reads for as long as the connection lives, so that its end is known at once,
/// also while nobody asks anything.
public final class KeptConnection implements AutoCloseable {

  /// Longest body of an answer.
  private static final int BODY_BYTES_MAX = 1024 * 1024;

  /// A whole answer.
  ///
  /// @param text its body, empty when it has none
  public record Answer(int status, Headers headers, String text) {}

  private final Connection connection;
  private final CompletableFuture<Void> closed = new CompletableFuture<>();
  private final Queue<CompletableFuture<Answer>> waiting = new ConcurrentLinkedQueue<>();
  private final ReentrantLock sending = new ReentrantLock();

  private KeptConnection(Connection connection) {
    this.connection = connection;
  }

  /// Connects.
  ///
  /// @throws WireException NOT_CONNECTED
  public static KeptConnection open(Endpoint endpoint) throws WireException {
    var kept = new KeptConnection(Connection.open(endpoint, Optional.empty(), Optional.empty()));
    Thread.ofVirtual().name("kept-connection").start(kept::read);
    return kept;
  }

  /// The channel below, to ask who is at its other end.
  public SocketChannel channel() {
    return connection.channel();
  }

  /// Completes when the connection is over, by whichever side.
  public CompletableFuture<Void> closed() {
    return closed;
  }

  /// Sends a request and waits for its answer.
  ///
  /// @param json body; empty for none
  /// @throws WireException TIMED_OUT when no answer came in time, and then what became of the
  ///   request is unknown; CUT_OFF when the connection is over
  /// @throws InterruptedException the answer is then thrown away when it comes
  public Answer exchange(String method, String target, Optional<String> json, Duration deadline)
      throws WireException, InterruptedException {
    var answer = new CompletableFuture<Answer>();
    sending.lock();
    try {
      waiting.add(answer);
      if (closed.isDone()) {
        throw over();
      }
      connection.write(request(method, target, json));
    } finally {
      sending.unlock();
    }
    try {
      return answer.get(deadline.toNanos(), TimeUnit.NANOSECONDS);
    } catch (TimeoutException e) {
      throw new WireException(
          Fault.TIMED_OUT,
          connection.endpoint() + " did not answer within " + deadline.toMillis() + " ms",
          e);
    } catch (ExecutionException e) {
      throw e.getCause() instanceof WireException known
          ? known
          : new WireException(Fault.CUT_OFF, String.valueOf(e.getCause()), e);
    }
  }

  private String request(String method, String target, Optional<String> json) {
    StringBuilder text = new StringBuilder(256);
    text.append(method).append(' ').append(target).append(" HTTP/1.1\r\n");
    text.append("Host: ").append(connection.endpoint().authority()).append("\r\n");
    text.append("Accept: application/json\r\n");
    if (json.isPresent()) {
      // Written as Latin-1 below, byte for byte.
      byte[] body = json.get().getBytes(StandardCharsets.UTF_8);
      text.append("Content-Type: application/json\r\n");
      text.append("Content-Length: ").append(body.length).append("\r\n\r\n");
      text.append(new String(body, StandardCharsets.ISO_8859_1));
    } else {
      text.append("\r\n");
    }
    return text.toString();
  }

  private WireException over() {
    return new WireException(Fault.CUT_OFF, connection.endpoint() + " ended the connection");
  }

  private void read() {
    WireException why = over();
    try {
      while (true) {
        WireResponse response = WireClient.readHead(connection, "GET");
        Answer answer =
            new Answer(response.status(), response.headers(), response.text(BODY_BYTES_MAX));
        CompletableFuture<Answer> asked = waiting.poll();
        if (asked == null) {
          throw new WireException(Fault.MALFORMED, "an answer came that nobody asked for");
        }
        asked.complete(answer);
      }
    } catch (WireException e) {
      why = e;
    } catch (IOException e) {
      why = new WireException(Fault.CUT_OFF, String.valueOf(e.getMessage()), e);
    } finally {
      close();
      closed.complete(null);
      for (var asked = waiting.poll(); asked != null; asked = waiting.poll()) {
        asked.completeExceptionally(why);
      }
    }
  }

  @Override
  public void close() {
    connection.close();
  }
}
