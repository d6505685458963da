package dev.space.http;

import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetSocketAddress;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.function.BiConsumer;

/// One request and its answer. Reading and writing block; a blocked write is the back-pressure of a
/// slow client. Belongs to the thread of its handler.
public interface Exchange {

  // -- request

  /// The id that stands in the answer, in errors and in log lines.
  String requestId();

  /// Name of the listener it came in by.
  String listener();

  /// Upper case as sent.
  String method();

  /// The path as sent, escapes and all.
  String rawPath();

  /// The query as sent, empty when there is none.
  String rawQuery();

  Query query();

  /// A variable of the route's template, decoded; a tail variable is as sent.
  String pathVariable(String name);

  /// `HTTP/1.0`, `HTTP/1.1` or `HTTP/2.0`.
  String protocol();

  /// `http` or `https`, as the client sees it.
  String scheme();

  /// Name and port from the Host header or authority, such as `127.0.0.1:8700`.
  Optional<String> host();

  InetSocketAddress remote();

  /// The first value of a header.
  Optional<String> header(String name);

  List<String> headers(String name);

  /// Every header line in order.
  void eachHeader(BiConsumer<String, String> sink);

  /// What the Content-Length header says.
  OptionalLong contentLength();

  /// Whether the request may have a body.
  boolean hasBody();

  /// The body as it arrives, without a limit on its length. Failures to read are
  /// [ClientGoneException]s.
  InputStream body();

  /// The whole body; the same bytes at every call.
  ///
  /// @throws dev.space.core.error.SpaceException BODY_TOO_LARGE
  byte[] bodyBytes(int bytesMax);

  // -- answer

  /// Sets the status; 200 when never called.
  Exchange status(int status);

  /// Sets a header, replacing earlier values.
  Exchange header(String name, String value);

  Exchange addHeader(String name, String value);

  /// Sets a header that stays when the handler then fails, such as `Allow` or `WWW-Authenticate`.
  Exchange errorHeader(String name, String value);

  /// Takes back what [#errorHeader] set.
  Exchange clearErrorHeader(String name);

  int statusSent();

  /// Whether status and headers are on their way.
  boolean committed();

  /// Answers with a body of known length. The content type goes out as it is.
  void send(String contentType, byte[] body);

  /// Answers without a body.
  void sendEmpty();

  /// Answers with a body of unknown length. Every write goes out at once: wrap small writes. The
  /// end of the handler ends the body; a handler that throws cuts the connection instead, so that
  /// nobody takes a part for the whole.
  OutputStream stream(String contentType);

  /// Answers with a body of exactly this length.
  OutputStream stream(String contentType, long length);

  /// Answers with server-sent events.
  EventStream events();

  /// Lets this exchange be without traffic for any time: no idle timeout cuts it.
  void idleForever();

  /// Cuts the connection (HTTP/2: resets the stream) without a clean end. The handler returns
  /// afterwards.
  void abort();

  // -- upgrades

  /// Whether the client asks to change to this protocol.
  boolean wantsUpgrade(String protocol);

  /// Accepts a web socket. The talk runs on its own virtual thread after the handler returned.
  ///
  /// @throws dev.space.core.error.SpaceException INVALID_REQUEST when the request is no handshake
  void webSocket(WebSocketOptions options, WebSocketHandler talk);

  /// Answers 101 with these headers and gives the raw connection away. The tunnel's work runs on
  /// its own virtual thread after the handler returned.
  ///
  /// @throws dev.space.core.error.SpaceException NOT_SUPPORTED on HTTP/2
  void tunnel(List<Map.Entry<String, String>> headers, TunnelHandler work);

  // -- for routers

  /// Notes which route answers.
  void matched(String template, Map<String, String> variables);
}
