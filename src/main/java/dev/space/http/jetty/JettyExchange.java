package dev.space.http.jetty;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.error.SpaceException;
import dev.space.http.ClientGoneException;
import dev.space.http.EventStream;
import dev.space.http.Exchange;
import dev.space.http.Query;
import dev.space.http.RequestIds;
import dev.space.http.TunnelHandler;
import dev.space.http.WebSocketHandler;
import dev.space.http.WebSocketOptions;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.function.BiConsumer;
import org.eclipse.jetty.http.HttpField;
import org.eclipse.jetty.http.HttpHeader;
import org.eclipse.jetty.http.HttpVersion;
import org.eclipse.jetty.io.Content;
import org.eclipse.jetty.io.EndPoint;
import org.eclipse.jetty.io.SocketChannelEndPoint;
import org.eclipse.jetty.server.Request;
import org.eclipse.jetty.server.Response;
import org.eclipse.jetty.util.Blocker;
import org.eclipse.jetty.util.Callback;
import org.jspecify.annotations.Nullable;

final class JettyExchange implements Exchange {
  private final RootHandler root;
  private final String listener;
  private final String requestId;
  private final Request request;
  private final Response response;
  private final Callback callback;
  private final Map<String, String> errorHeaders = new LinkedHashMap<>();

  private Map<String, String> variables = Map.of();
  private String route = "none";
  private @Nullable Query query;
  private @Nullable InputStream body;
  private byte @Nullable [] bodyBytes;
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
    this.root = root;
    this.listener = listener;
    this.requestId = requestId;
    this.request = request;
    this.response = response;
    this.callback = callback;
    response.getHeaders().put(RequestIds.HEADER, requestId);
  }

  // -- request

  @Override
  public String requestId() {
    return requestId;
  }

  @Override
  public String listener() {
    return listener;
  }

  @Override
  public String method() {
    return request.getMethod();
  }

  @Override
  public String rawPath() {
    String path = request.getHttpURI().getPath();
    return path == null ? "" : path;
  }

  @Override
  public String rawQuery() {
    String raw = request.getHttpURI().getQuery();
    return raw == null ? "" : raw;
  }

  @Override
  public Query query() {
    Query parsed = query;
    if (parsed == null) {
      parsed = Query.parse(rawQuery());
      query = parsed;
    }
    return parsed;
  }

  @Override
  public String pathVariable(String name) {
    String value = variables.get(name);
    if (value == null) {
      throw Problem.of(ErrorCode.INTERNAL, "The route " + route + " has no variable " + name)
          .toException();
    }
    return value;
  }

  @Override
  public String protocol() {
    return request.getConnectionMetaData().getProtocol();
  }

  @Override
  public String scheme() {
    return request.isSecure() ? "https" : "http";
  }

  @Override
  public Optional<String> host() {
    String authority = request.getHttpURI().getAuthority();
    return authority == null || authority.isEmpty()
        ? header("Host").filter(h -> !h.isEmpty())
        : Optional.of(authority);
  }

  @Override
  public InetSocketAddress remote() {
    return (InetSocketAddress) request.getConnectionMetaData().getRemoteSocketAddress();
  }

  @Override
  public Optional<String> header(String name) {
    return Optional.ofNullable(request.getHeaders().get(name));
  }

  @Override
  public List<String> headers(String name) {
    return request.getHeaders().getValuesList(name);
  }

  @Override
  public void eachHeader(BiConsumer<String, String> sink) {
    for (HttpField field : request.getHeaders()) {
      String value = field.getValue();
      sink.accept(field.getName(), value == null ? "" : value);
    }
  }

  @Override
  public OptionalLong contentLength() {
    long length = request.getLength();
    return length < 0 ? OptionalLong.empty() : OptionalLong.of(length);
  }

  @Override
  public boolean hasBody() {
    return request.getLength() != 0 && !isWithoutBody();
  }

  private boolean isWithoutBody() {
    return request.getLength() < 0
        && request.getConnectionMetaData().getHttpVersion() != HttpVersion.HTTP_2
        && !request.getHeaders().contains(HttpHeader.TRANSFER_ENCODING);
  }

  @Override
  public InputStream body() {
    InputStream in = body;
    if (in == null) {
      in = new ClientInput(Content.Source.asInputStream(request));
      body = in;
    }
    return in;
  }

  @Override
  public byte[] bodyBytes(int bytesMax) {
    byte[] bytes = bodyBytes;
    if (bytes != null && bytes.length <= bytesMax) {
      return bytes;
    }
    if (bytes != null || contentLength().orElse(0) > bytesMax) {
      throw tooLarge(bytesMax);
    }
    try {
      bytes = body().readNBytes(bytesMax);
      if (bytes.length == bytesMax && body().read() >= 0) {
        throw tooLarge(bytesMax);
      }
    } catch (IOException e) {
      throw Problem.of(ErrorCode.CANCELLED, "The body can't be read").toException(e);
    }
    bodyBytes = bytes;
    return bytes;
  }

  private static SpaceException tooLarge(int bytesMax) {
    return Problem.of(ErrorCode.BODY_TOO_LARGE, "The body is larger than " + bytesMax + " bytes")
        .remedy("Send at most " + bytesMax + " bytes.")
        .toException();
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

  @Override
  public void matched(String template, Map<String, String> found) {
    route = template;
    variables = found;
  }

  // -- for the root handler

  String route() {
    return route;
  }

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
    if (hasBody()) {
      drain();
    }
  }

  private void drain() {
    if (contentLength().orElse(0) > root.limits().drainBytesMax()
        || header("Expect").isPresent() && body == null) {
      header("Connection", "close");
      return;
    }
    long deadline = System.nanoTime() + RootHandler.DRAIN_MILLIS_MAX * 1_000_000;

    int left = root.limits().drainBytesMax();
    while (left > 0 && System.nanoTime() < deadline) {
      Content.Chunk chunk = request.read();
      if (chunk == null) {
        if (!awaitContent(deadline)) {
          break;
        }
        continue;
      }
      if (Content.Chunk.isFailure(chunk)) {
        break;
      }
      left -= chunk.remaining();
      boolean last = chunk.isLast();
      chunk.release();
      if (last) {
        return;
      }
    }
    header("Connection", "close");
  }

  private boolean awaitContent(long deadline) {
    try (Blocker.Runnable arrived = Blocker.runnable()) {
      request.demand(arrived);
      arrived.block(
          Math.max(1, (deadline - System.nanoTime()) / 1_000_000),
          java.util.concurrent.TimeUnit.MILLISECONDS);
      return true;
    } catch (IOException | java.util.concurrent.TimeoutException _) {
      return false;
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
