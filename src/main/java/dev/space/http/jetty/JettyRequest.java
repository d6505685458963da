package dev.space.http.jetty;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.error.SpaceException;
import dev.space.http.Exchange;
import dev.space.http.Query;
import java.io.IOException;
import java.io.InputStream;
import java.net.InetSocketAddress;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.function.BiConsumer;
import org.eclipse.jetty.http.HttpField;
import org.eclipse.jetty.http.HttpHeader;
import org.eclipse.jetty.http.HttpVersion;
import org.eclipse.jetty.io.Content;
import org.eclipse.jetty.server.Request;
import org.jspecify.annotations.Nullable;

/// The request's half of an exchange.
abstract class JettyRequest implements Exchange {
  private final String listener;
  final String requestId;
  final Request request;

  private Map<String, String> variables = Map.of();
  private String route = "none";
  private @Nullable Query query;
  private @Nullable InputStream body;
  private byte @Nullable [] bodyBytes;

  JettyRequest(String listener, String requestId, Request request) {
    this.listener = listener;
    this.requestId = requestId;
    this.request = request;
  }

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

  /// Whether nobody began to read the body.
  boolean bodyIsUntouched() {
    return body == null;
  }

  @Override
  public void matched(String template, Map<String, String> found) {
    route = template;
    variables = found;
  }

  String route() {
    return route;
  }
}
