package dev.space.http.jetty;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.error.SpaceException;
import dev.space.http.ClientGoneException;
import dev.space.http.HttpListener;
import dev.space.http.LiveStreams;
import dev.space.http.RequestIds;
import dev.space.http.RequestObserver;
import dev.space.http.RequestScope;
import dev.space.http.ServerLimits;
import java.io.IOException;
import java.time.Duration;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import org.eclipse.jetty.http.HttpException;
import org.eclipse.jetty.server.Connector;
import org.eclipse.jetty.server.Handler;
import org.eclipse.jetty.server.Request;
import org.eclipse.jetty.server.Response;
import org.eclipse.jetty.util.Callback;
import org.eclipse.jetty.websocket.server.ServerWebSocketContainer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.slf4j.MDC;

/// The one place that sees Jetty's callback: gives each request an id, runs its handler, turns what
/// it throws into an answer, and completes the callback exactly once.
final class RootHandler extends Handler.Abstract {
  private static final Logger LOG = LoggerFactory.getLogger("dev.space.http.requests");

  private static final Set<String> METHODS =
      Set.of("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "CONNECT", "TRACE");

  private final Map<Connector, HttpListener> listeners;
  private final RequestIds ids;
  private final RequestObserver observer;
  private final LiveStreams streams;
  private final ServerLimits limits;
  private final ServerWebSocketContainer webSockets;

  private final ReentrantLock lock = new ReentrantLock();
  private final Condition ended = lock.newCondition();
  private int open;
  private volatile boolean refusing;

  RootHandler(
      Map<Connector, HttpListener> listeners,
      RequestIds ids,
      RequestObserver observer,
      LiveStreams streams,
      ServerLimits limits,
      ServerWebSocketContainer webSockets) {
    this.listeners = listeners;
    this.ids = ids;
    this.observer = observer;
    this.streams = streams;
    this.limits = limits;
    this.webSockets = webSockets;
  }

  LiveStreams streams() {
    return streams;
  }

  ServerWebSocketContainer webSockets() {
    return webSockets;
  }

  ServerLimits limits() {
    return limits;
  }

  @Override
  public boolean handle(Request request, Response response, Callback callback) {
    HttpListener listener =
        Optional.ofNullable(listeners.get(request.getConnectionMetaData().getConnector()))
            .orElseThrow();
    String id = ids.forRequest(Optional.ofNullable(request.getHeaders().get(RequestIds.HEADER)));
    var exchange = new JettyExchange(this, listener.name(), id, request, response, callback);
    long start = System.nanoTime();
    began();
    MDC.put(RequestScope.MDC_KEY, id);
    try {
      ScopedValue.where(RequestScope.REQUEST_ID, id).run(() -> run(listener, exchange));
    } finally {
      var took = Duration.ofNanos(System.nanoTime() - start);
      observer.ended(
          listener.name(),
          METHODS.contains(request.getMethod()) ? request.getMethod() : "OTHER",
          exchange.route(),
          exchange.statusSent(),
          took);
      LOG.debug(
          "{} {} {} -> {} in {} ms",
          listener.name(),
          request.getMethod(),
          exchange.rawPath(),
          exchange.statusSent(),
          took.toMillis());
      MDC.remove(RequestScope.MDC_KEY);
      ended();
    }
    return true;
  }

  private void run(HttpListener listener, JettyExchange exchange) {
    try {
      if (refusing) {
        exchange.errorHeader("Connection", "close");
        throw Problem.of(ErrorCode.SHUTTING_DOWN, "The server is stopping")
            .remedy("Try again when it is up.")
            .toException();
      }
      listener.handler().handle(exchange);
      exchange.finish();
    } catch (Throwable t) {
      fail(listener, exchange, t);
    }
  }

  private void fail(HttpListener listener, JettyExchange exchange, Throwable thrown) {
    Thread.interrupted();
    Problem problem = problem(thrown);
    if (exchange.isOver()) {
      LOG.debug("After the end of {}: {}", exchange.rawPath(), problem.oneLine());
      return;
    }
    boolean gone = problem.code() == ErrorCode.CANCELLED;
    // A stop interrupts streams that are open, which is no defect of theirs.
    boolean stopped = refusing && thrown instanceof InterruptedException;
    if (problem.code() == ErrorCode.INTERNAL && !stopped) {
      LOG.error("Defect while answering {} {}", exchange.method(), exchange.rawPath(), thrown);
    }
    try {
      if (gone || exchange.committed()) {
        exchange.endBroken(problem, gone);
      } else {
        exchange.resetForError(problem.code().status());
        listener.errors().render(exchange, problem);
        exchange.finish();
      }
    } catch (Throwable t) {
      LOG.debug("The error could not be told: {}", t.toString());
      exchange.cut();
    }
  }

  private Problem problem(Throwable thrown) {
    for (Throwable t = thrown; t != null; t = t.getCause()) {
      if (t instanceof ClientGoneException gone) {
        return clientFault(gone);
      }
    }
    if (thrown instanceof SpaceException known) {
      return known.problem();
    }
    if (thrown instanceof InterruptedException && refusing) {
      return Problem.of(ErrorCode.SHUTTING_DOWN, "The server is stopping")
          .remedy("Try again when it is up.");
    }
    return Problem.of(ErrorCode.INTERNAL, "The server hit a defect")
        .remedy("Report it with the request id; the log has the details under it.");
  }

  /// A client that sent garbage or stopped sending still reads its answer; others are gone.
  private static Problem clientFault(ClientGoneException gone) {
    for (Throwable t = gone.getCause(); t != null; t = t.getCause()) {
      if (t instanceof HttpException) {
        return Problem.of(ErrorCode.MALFORMED_BODY, "The body is not valid HTTP")
            .because(String.valueOf(t.getMessage()))
            .remedy("Check the chunk sizes and the Content-Length.");
      }
      if (t instanceof TimeoutException) {
        return Problem.of(ErrorCode.REQUEST_TIMEOUT, "The rest of the body did not come in time")
            .remedy("Send without long pauses.");
      }
    }
    return Problem.of(ErrorCode.CANCELLED, "The client went away");
  }

  // -- counting

  void began() {
    lock.lock();
    try {
      open++;
    } finally {
      lock.unlock();
    }
  }

  void ended() {
    lock.lock();
    try {
      open--;
      ended.signalAll();
    } finally {
      lock.unlock();
    }
  }

  int open() {
    lock.lock();
    try {
      return open;
    } finally {
      lock.unlock();
    }
  }

  void refuse() {
    refusing = true;
  }

  boolean awaitIdle(Duration most) {
    long left = most.toNanos();
    lock.lock();
    try {
      while (open > 0 && left > 0) {
        left = ended.awaitNanos(left);
      }
      return open == 0;
    } catch (InterruptedException _) {
      Thread.currentThread().interrupt();
      return false;
    } finally {
      lock.unlock();
    }
  }

  /// Runs the talk of a web socket or tunnel, which counts as an open request of its own.
  void runUpgraded(String requestId, ThrowingRunnable work) {
    began();
    Thread.ofVirtual()
        .name("http-upgraded")
        .start(
            () -> {
              MDC.put(RequestScope.MDC_KEY, requestId);
              try {
                ScopedValue.where(RequestScope.REQUEST_ID, requestId)
                    .call(
                        () -> {
                          work.run();
                          return true;
                        });
              } catch (IOException | InterruptedException e) {
                LOG.debug("An upgraded connection ended: {}", e.toString());
              } catch (SpaceException e) {
                LOG.debug("An upgraded connection ended: {}", e.problem().oneLine());
              } catch (Throwable e) {
                LOG.error("Defect in an upgraded connection", e);
              } finally {
                ended();
              }
            });
  }

  @FunctionalInterface
  interface ThrowingRunnable {
    void run() throws Exception;
  }
}
