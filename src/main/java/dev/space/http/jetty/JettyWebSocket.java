package dev.space.http.jetty;

import dev.space.http.ClientGoneException;
import dev.space.http.LiveStreams;
import dev.space.http.WebSocket;
import dev.space.http.WebSocketHandler;
import dev.space.http.WebSocketOptions;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.Optional;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Consumer;
import org.eclipse.jetty.websocket.api.Callback;
import org.eclipse.jetty.websocket.api.Session;
import org.eclipse.jetty.websocket.api.StatusCode;
import org.jspecify.annotations.Nullable;

/// A web socket over Jetty's session. Public because Jetty calls its methods by handles.
public final class JettyWebSocket implements Session.Listener, WebSocket, LiveStreams.LiveStream {
  /// A socket whose client answers no ping is cut after this many keep-alive intervals.
  private static final int SILENT_INTERVALS_MAX = 4;

  private final WebSocketOptions options;
  private final LiveStreams streams;
  private final Consumer<RootHandler.ThrowingRunnable> runner;
  private final WebSocketHandler talk;

  /// One message is asked for at a time, so two places never fill up: a message and the end.
  private final BlockingQueue<Optional<Message>> received = new ArrayBlockingQueue<>(2);

  private final AtomicBoolean ended = new AtomicBoolean();
  private final ReentrantLock sending = new ReentrantLock();
  private volatile @Nullable Session session;

  /// Whether the client is being read from; only then can it be seen to be silent.
  private volatile boolean reading;

  private volatile long lastSeen = System.nanoTime();
  private volatile long lastPing = System.nanoTime();

  JettyWebSocket(
      WebSocketOptions options,
      LiveStreams streams,
      Consumer<RootHandler.ThrowingRunnable> runner,
      WebSocketHandler talk) {
    this.options = options;
    this.streams = streams;
    this.runner = runner;
    this.talk = talk;
  }

  // -- called by Jetty

  @Override
  public void onWebSocketOpen(Session opened) {
    opened.setIdleTimeout(Duration.ZERO);
    opened.setMaxTextMessageSize(options.messageBytesMax());
    opened.setMaxBinaryMessageSize(options.messageBytesMax());
    session = opened;
    streams.add(this);
    runner.accept(this::run);
  }

  @Override
  public void onWebSocketText(String message) {
    reading = false;
    received.add(Optional.of(new Message.Text(message)));
  }

  @Override
  public void onWebSocketBinary(ByteBuffer payload, Callback callback) {
    byte[] bytes = new byte[payload.remaining()];
    payload.get(bytes);
    reading = false;
    callback.succeed();
    received.add(Optional.of(new Message.Binary(bytes)));
  }

  @Override
  public void onWebSocketPong(ByteBuffer payload) {
    lastSeen = System.nanoTime();
    demand();
  }

  @Override
  public void onWebSocketPing(ByteBuffer payload) {
    lastSeen = System.nanoTime();
    Session open = session;
    if (open != null) {
      open.sendPong(payload, Callback.NOOP);
    }
    demand();
  }

  @Override
  public void onWebSocketError(Throwable cause) {
    end();
  }

  @Override
  public void onWebSocketClose(int statusCode, String reason, Callback callback) {
    callback.succeed();
    end();
  }

  // -- called by the talk

  private void run() throws Exception {
    try {
      talk.talk(this);
      close(StatusCode.NORMAL, "");
    } catch (Exception e) {
      close(StatusCode.SERVER_ERROR, "");
      throw e;
    } finally {
      streams.remove(this);
    }
  }

  @Override
  public Optional<Message> receive() throws InterruptedException {
    if (!ended.get()) {
      lastSeen = System.nanoTime();
      reading = true;
      demand();
    }
    Optional<Message> message = received.take();
    if (message.isEmpty()) {
      received.add(message);
    }
    return message;
  }

  private void demand() {
    Session open = session;
    if (open != null && open.isOpen()) {
      open.demand();
    }
  }

  @Override
  public void sendText(String text) throws ClientGoneException {
    send((open, callback) -> open.sendText(text, callback));
  }

  @Override
  public void sendBinary(byte[] bytes) throws ClientGoneException {
    send((open, callback) -> open.sendBinary(ByteBuffer.wrap(bytes), callback));
  }

  private interface Sender {
    void send(Session open, Callback callback);
  }

  private void send(Sender sender) throws ClientGoneException {
    Session open = session;
    if (open == null || !open.isOpen()) {
      throw new ClientGoneException(new java.io.IOException("the web socket is closed"));
    }
    var sent = new CompletableFuture<Boolean>();
    sending.lock();
    try {
      sender.send(open, Callback.from(() -> sent.complete(true), sent::completeExceptionally));
      sent.get();
    } catch (ExecutionException e) {
      throw new ClientGoneException(e.getCause() == null ? e : e.getCause());
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new ClientGoneException(e);
    } finally {
      sending.unlock();
    }
  }

  @Override
  public void close(int code, String reason) {
    Session open = session;
    if (open != null && open.isOpen()) {
      open.close(code, reason, Callback.NOOP);
    }
  }

  @Override
  public boolean isOpen() {
    Session open = session;
    return open != null && open.isOpen();
  }

  // -- signs of life

  @Override
  public void tick(long nanoTime, Duration keepAlive) {
    Session open = session;
    if (open == null || !open.isOpen()) {
      return;
    }
    if (reading && nanoTime - lastSeen > SILENT_INTERVALS_MAX * keepAlive.toNanos()) {
      open.disconnect();
      end();
    } else if (nanoTime - lastPing >= keepAlive.toNanos()) {
      lastPing = nanoTime;
      open.sendPing(ByteBuffer.allocate(0), Callback.NOOP);
    }
  }

  @Override
  public void shutDown() {
    close(StatusCode.SHUTDOWN, "The server is stopping");
    end();
  }

  private void end() {
    if (ended.compareAndSet(false, true)) {
      received.add(Optional.empty());
    }
  }
}
