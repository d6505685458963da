package dev.space.http.jetty;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.error.SpaceException;
import dev.space.http.ClientGoneException;
import dev.space.http.EventStream;
import dev.space.http.Exchange;
import dev.space.http.RequestIds;
import dev.space.http.TunnelHandler;
import dev.space.http.WebSocketHandler;
import dev.space.http.WebSocketOptions;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.ByteBuffer;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.eclipse.jetty.http.HttpHeader;
import org.eclipse.jetty.http.HttpVersion;
import org.eclipse.jetty.io.EndPoint;
import org.eclipse.jetty.io.SocketChannelEndPoint;
import org.eclipse.jetty.server.Request;
import org.eclipse.jetty.server.Response;
import org.eclipse.jetty.util.Blocker;
import org.eclipse.jetty.util.Callback;
import org.jspecify.annotations.Nullable;

/// The answer's half of an exchange, and its end.
final class JettyExchange extends JettyRequest {
  private final RootHandler root;
  private final Response response;
  private final Callback callback;
  private final Map<String, String> errorHeaders = new LinkedHashMap<>();

  private @Nullable EventStream events;
  private int status;
  private boolean answered;
  private boolean idleForever;

  /// The callback is completed or given away.
  private boolean over;

  JettyExchange(
      RootHandler root,
      String listener,
      String requestId,
      Request request,
      Response response,
      Callback callback) {
    super(listener, requestId, request);
    this.root = root;
    this.response = response;
    this.callback = callback;
    response.getHeaders().put(RequestIds.HEADER, requestId);
  }

  // -- answer

  @Override
  public Exchange status(int value) {
    status = value;
    response.setStatus(value);
    return this;
  }

  @Override
  public Exchange header(String name, String value) {
    response.getHeaders().put(name, checked(value));
    return this;
  }

  @Override
  public Exchange addHeader(String name, String value) {
    response.getHeaders().add(name, checked(value));
    return this;
  }

  @Override
  public Exchange errorHeader(String name, String value) {
    errorHeaders.put(name, value);
    return header(name, value);
  }

  @Override
  public Exchange clearErrorHeader(String name) {
    errorHeaders.remove(name);
    response.getHeaders().remove(name);
    return this;
  }

  private static String checked(String value) {
    for (int i = 0; i < value.length(); i++) {
      char c = value.charAt(i);
      if (c < ' ' && c != '\t' || c == 0x7f) {
        throw Problem.of(ErrorCode.INTERNAL, "A header's value holds a control character")
            .toException();
      }
    }
    return value;
  }

  @Override
  public int statusSent() {
    return status;
  }

  @Override
  public boolean committed() {
    return response.isCommitted();
  }

  @Override
  public void send(String contentType, byte[] bytes) {
    beginAnswer();
    response.getHeaders().put(HttpHeader.CONTENT_TYPE, contentType);
    write(ByteBuffer.wrap(bytes));
  }

  @Override
  public void sendEmpty() {
    beginAnswer();
    write(ByteBuffer.allocate(0));
  }

  private void write(ByteBuffer bytes) {
    try (Blocker.Callback written = Blocker.callback()) {
      response.write(true, bytes, written);
      written.block();
    } catch (IOException e) {
      throw Problem.of(ErrorCode.CANCELLED, "The client went away")
          .toException(new ClientGoneException(e));
    }
  }

  @Override
  public OutputStream stream(String contentType) {
    beginAnswer();
    response.getHeaders().put(HttpHeader.CONTENT_TYPE, contentType);
    return new ClientOutput(response);
  }

  @Override
  public OutputStream stream(String contentType, long length) {
    response.getHeaders().put(HttpHeader.CONTENT_LENGTH, length);
    return stream(contentType);
  }

  @Override
  public EventStream events() {
    if (method().equals("HEAD")) {
      errorHeader("Allow", "GET");
      throw Problem.of(ErrorCode.METHOD_NOT_ALLOWED, "A stream of events has no HEAD")
          .remedy("Use GET.")
          .toException();
    }
    header("Cache-Control", "no-store").header("X-Accel-Buffering", "no");
    var out = (ClientOutput) stream("text/event-stream");
    idleForever();
    try {
      out.commit();
    } catch (ClientGoneException e) {
      throw Problem.of(ErrorCode.CANCELLED, "The client went away").toException(e);
    }
    var opened = new EventStream(out, root.streams(), requestId);
    events = opened;
    return opened;
  }

  private void beginAnswer() {
    if (answered || over) {
      throw Problem.of(ErrorCode.INTERNAL, "The request is answered twice").toException();
    }
    answered = true;
    if (status == 0) {
      status(200);
    }
  }

  @Override
  public void idleForever() {
    request.addIdleTimeoutListener(_ -> false);
    // The listener guards reads and pauses; a blocked write has only the connection's timeout.
    if (request.getConnectionMetaData().getHttpVersion() != HttpVersion.HTTP_2) {
      endPoint().setIdleTimeout(0);
      idleForever = true;
    }
  }

  @Override
  public void abort() {
    cut();
  }

  private EndPoint endPoint() {
    return request.getConnectionMetaData().getConnection().getEndPoint();
  }

  // -- upgrades

  @Override
  public boolean wantsUpgrade(String protocol) {
    return headers("Connection").stream()
            .flatMap(line -> List.of(line.split(",")).stream())
            .anyMatch(token -> token.strip().equalsIgnoreCase("upgrade"))
        && header("Upgrade").filter(u -> u.strip().equalsIgnoreCase(protocol)).isPresent();
  }

  @Override
  public void webSocket(WebSocketOptions options, WebSocketHandler talk) {
    if (!wantsUpgrade("websocket")) {
      errorHeader("Upgrade", "websocket");
      throw Problem.of(ErrorCode.INVALID_REQUEST, "The request is no web socket handshake")
          .remedy("Connect with a web socket client, over HTTP/1.1.")
          .toException();
    }
    boolean taken;
    try {
      taken =
          root.webSockets()
              .upgrade(
                  (_, upgrade, _) -> {
                    options.subprotocol().ifPresent(upgrade::setAcceptedSubProtocol);
                    return new JettyWebSocket(
                        options, root.streams(), work -> root.runUpgraded(requestId, work), talk);
                  },
                  request,
                  response,
                  callback);
    } catch (RuntimeException e) {
      throw badHandshake(e);
    }
    if (!taken) {
      throw badHandshake(new IOException("not taken"));
    }
    over = true;
    status = response.getStatus();
  }

  private static SpaceException badHandshake(Exception e) {
    return Problem.of(ErrorCode.INVALID_REQUEST, "The web socket handshake is not valid")
        .remedy("Send Sec-WebSocket-Key and Sec-WebSocket-Version: 13.")
        .toException(e);
  }

  @Override
  public void tunnel(List<Map.Entry<String, String>> headers, TunnelHandler work) {
    if (request.getConnectionMetaData().getHttpVersion() != HttpVersion.HTTP_1_1) {
      throw Problem.of(ErrorCode.NOT_SUPPORTED, "Only HTTP/1.1 connections can be upgraded")
          .remedy("Connect with HTTP/1.1.")
          .toException();
    }
    beginAnswer();
    status(101);
    headers.forEach(header -> addHeader(header.getKey(), header.getValue()));
    JettyTunnel.open(request, root.streams(), w -> root.runUpgraded(requestId, w), work);
  }

  // -- for the root handler

  boolean isOver() {
    return over;
  }

  void finish() {
    if (over) {
      return;
    }
    EventStream open = events;
    if (open != null) {
      open.close();
      if (open.isGone()) {
        cut();
        return;
      }
    }
    over = true;
    if (status == 0) {
      status(200);
    }
    if (idleForever) {
      endPoint().setIdleTimeout(root.limits().idleTimeout().toMillis());
    }
    callback.succeeded();
  }

  /// Forgets what the handler prepared, and reads away a bounded rest of the body.
  void resetForError(int errorStatus) {
    response.reset();
    answered = false;
    header(RequestIds.HEADER, requestId);
    errorHeaders.forEach(this::header);
    status(errorStatus);
    boolean refusedBeforehand = header("Expect").isPresent() && bodyIsUntouched();
    if (hasBody()
        && (refusedBeforehand || !UnreadBody.drain(request, root.limits().drainBytesMax()))) {
      header("Connection", "close");
    }
  }

  /// Ends an answer that is under way and can't be completed. A stream of events says why; any
  /// other is cut, so that nobody takes a part for the whole.
  void endBroken(Problem problem, boolean gone) {
    EventStream open = events;
    if (open == null || gone && !open.isStopped()) {
      if (open != null) {
        open.close();
      }
      cut();
      return;
    }
    if (!open.isStopped()) {
      open.error(problem);
    }
    finish();
  }

  /// Breaks the connection or stream in a way that no client takes for an end.
  void cut() {
    if (over) {
      return;
    }
    over = true;
    var reason = new IOException("aborted");
    if (request.getConnectionMetaData().getHttpVersion() != HttpVersion.HTTP_2) {
      EndPoint endPoint = endPoint();
      if (protocol().equals("HTTP/1.0")
          && endPoint instanceof SocketChannelEndPoint socket
          && socket.getChannel() instanceof java.nio.channels.SocketChannel channel) {
        resetOnClose(channel);
      }
      endPoint.close(reason);
    } else if (!response.isCommitted()) {
      try (Blocker.Callback written = Blocker.callback()) {
        response.write(false, ByteBuffer.allocate(0), written);
        written.block();
      } catch (IOException _) {
        // It is gone already.
      }
    }
    callback.failed(reason);
  }

  /// HTTP/1.0 has no other sign of an incomplete body than a reset.
  private static void resetOnClose(java.nio.channels.SocketChannel channel) {
    try {
      channel.setOption(java.net.StandardSocketOptions.SO_LINGER, 0);
    } catch (IOException _) {
      // It is closed already.
    }
  }
}
