package dev.space.vmm.qemu;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.error.SpaceException;
import java.io.IOException;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import java.nio.file.Path;
import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Consumer;
import tools.jackson.core.JacksonException;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

/// QEMU's control connection: JSON lines over a unix socket. One virtual thread reads; every
/// command has a deadline. The end of the connection is the end of the process.
final class Qmp implements AutoCloseable {

  /// Longest line taken; the longest honest one is a console buffer of 64 KiB in base64.
  private static final int LINE_BYTES_MAX = 512 * 1024;

  private static final JsonMapper JSON = JsonMapper.builder().build();

  /// Something that QEMU tells unasked.
  record Event(String name, JsonNode data) {}

  private final SocketChannel channel;
  private final Consumer<Event> events;
  private final CompletableFuture<Void> greeted = new CompletableFuture<>();
  private final CompletableFuture<Void> closed = new CompletableFuture<>();
  private final Map<Long, CompletableFuture<JsonNode>> waiting = new ConcurrentHashMap<>();
  private final AtomicLong ids = new AtomicLong();
  private final Object writing = new Object();

  private Qmp(SocketChannel channel, Consumer<Event> events) {
    this.channel = channel;
    this.events = events;
  }

  /// Connects to a socket that exists.
  ///
  /// @param events called on the reading thread: must not block on an answer of QEMU
  static Qmp connect(Path socket, Consumer<Event> events) throws IOException {
    return new Qmp(SocketChannel.open(UnixDomainSocketAddress.of(socket)), events);
  }

  /// Starts to read, waits for the greeting and leaves the negotiation mode.
  void open(Duration deadline) {
    Thread.ofVirtual().name("qmp").start(this::read);
    await("greeting", greeted, deadline);
    execute("qmp_capabilities", Map.of(), deadline);
  }

  CompletableFuture<Void> closed() {
    return closed;
  }

  JsonNode execute(String command, Duration deadline) {
    return execute(command, Map.of(), deadline);
  }

  /// Runs a command.
  ///
  /// @throws dev.space.core.error.SpaceException VMM_FAILED when QEMU refuses, is gone, or doesn't
  ///   answer in time
  JsonNode execute(String command, Map<String, ?> arguments, Duration deadline) {
    long id = ids.incrementAndGet();
    Map<String, Object> request = new HashMap<>(Map.of("execute", command, "id", id));
    if (!arguments.isEmpty()) {
      request.put("arguments", arguments);
    }
    CompletableFuture<JsonNode> answer = new CompletableFuture<>();
    waiting.put(id, answer);
    try {
      if (closed.isDone()) {
        throw gone(command);
      }
      write(JSON.writeValueAsBytes(request));
      return await(command, answer, deadline);
    } catch (IOException e) {
      throw gone(command);
    } finally {
      waiting.remove(id);
    }
  }

  @Override
  public void close() {
    try {
      channel.close();
    } catch (IOException _) {
      // It is given up either way.
    }
  }

  private void write(byte[] json) throws IOException {
    ByteBuffer line = ByteBuffer.allocate(json.length + 1).put(json).put((byte) '\n').flip();
    synchronized (writing) {
      while (line.hasRemaining()) {
        channel.write(line);
      }
    }
  }

  private <T> T await(String what, CompletableFuture<T> answer, Duration deadline) {
    try {
      return answer.get(deadline.toNanos(), TimeUnit.NANOSECONDS);
    } catch (TimeoutException e) {
      throw failed(what, "no answer within " + deadline.toMillis() + " ms").toException(e);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw Problem.of(ErrorCode.CANCELLED, "The wait for QEMU was given up.").toException(e);
    } catch (ExecutionException e) {
      if (e.getCause() instanceof SpaceException known) {
        throw known;
      }
      throw failed(what, String.valueOf(e.getCause())).toException(e);
    }
  }

  private static Problem failed(String command, String why) {
    return Problem.of(ErrorCode.VMM_FAILED, "QEMU failed at '" + command + "'.").because(why);
  }

  private static SpaceException gone(String command) {
    return failed(command, "the process is gone").toException();
  }

  private void read() {
    ByteBuffer in = ByteBuffer.allocate(16 * 1024);
    byte[] line = new byte[1024];
    int length = 0;
    try {
      while (channel.read(in) >= 0) {
        in.flip();
        while (in.hasRemaining()) {
          byte b = in.get();
          if (b == '\n') {
            take(JSON.readTree(line, 0, length));
            length = 0;
          } else {
            if (length == LINE_BYTES_MAX) {
              throw new IOException("a line of QEMU is longer than " + LINE_BYTES_MAX + " bytes");
            }
            if (length == line.length) {
              line = java.util.Arrays.copyOf(line, Math.min(LINE_BYTES_MAX, 2 * length));
            }
            line[length++] = b;
          }
        }
        in.clear();
        if (length == 0 && line.length > 1024) {
          line = new byte[1024];
        }
      }
    } catch (IOException | JacksonException _) {
      // What can't be read ends the connection as its end does.
    } finally {
      close();
      greeted.completeExceptionally(gone("greeting"));
      closed.complete(null);
      waiting.values().forEach(w -> w.completeExceptionally(gone("command")));
    }
  }

  private void take(JsonNode message) {
    if (message.has("event")) {
      events.accept(new Event(message.get("event").asString(), message.path("data")));
    } else if (message.has("QMP")) {
      greeted.complete(null);
    } else {
      CompletableFuture<JsonNode> answer = waiting.get(message.path("id").asLong(0));
      if (answer == null) {
        return;
      }
      if (message.has("error")) {
        String why = message.path("error").path("desc").asString("unknown");
        answer.completeExceptionally(failed("command", why).toException());
      } else {
        answer.complete(message.path("return"));
      }
    }
  }
}
