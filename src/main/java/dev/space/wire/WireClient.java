package dev.space.wire;

import dev.space.wire.WireException.Fault;
import dev.space.wire.WireRequest.Body;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.security.SecureRandom;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.OptionalLong;

/// A small HTTP/1.1 client: one connection per request, blocking, over TCP and unix sockets.
///
/// It is here because the JDK's client knows no unix sockets and takes 400 ms to load (measured),
/// which is most of what a command may take.
public final class WireClient {

  private static final int LINE_BYTES_MAX = 16 * 1024;
  private static final int HEADERS_MAX = 200;

  private final Endpoint endpoint;

  public WireClient(Endpoint endpoint) {
    this.endpoint = endpoint;
  }

  public Endpoint endpoint() {
    return endpoint;
  }

  /// Sends a request and reads the head of its answer.
  ///
  /// @throws WireException when the exchange failed
  /// @throws IOException when the body to be sent could not be read
  public WireResponse send(WireRequest request) throws IOException {
    Connection connection = Connection.open(endpoint, request.deadline(), request.silence());
    try {
      connection.write(head(request));
      WireException cutOff = null;
      try {
        sendBody(connection, request.body());
      } catch (WireException e) {
        if (e.fault() != Fault.CUT_OFF) {
          throw e;
        }
        // A server may refuse a body before it was read: its answer says why.
        cutOff = e;
      }
      return cutOff == null
          ? readHead(connection, request.method())
          : answerAfter(cutOff, connection, request);
    } catch (IOException | RuntimeException e) {
      connection.close();
      throw e;
    }
  }

  /// Opens a WebSocket.
  ///
  /// @param silence how long the server may say nothing, keep-alives included
  /// @throws RefusedException when the server answered with something else
  public WebSocket open(String target, Headers headers, Optional<Duration> silence)
      throws IOException {
    SecureRandom random = new SecureRandom();
    String key = WebSocket.newKey(random);
    WireRequest request =
        new WireRequest("GET", target, headers, new Body.Empty(), Optional.empty(), silence)
            .header("Upgrade", "websocket")
            .header("Sec-WebSocket-Version", "13")
            .header("Sec-WebSocket-Key", key);
    Connection connection = Connection.open(endpoint, Optional.empty(), silence);
    try {
      connection.write(head(request));
      WireResponse response = readHead(connection, "GET");
      if (response.status() != 101) {
        throw new RefusedException(response.status(), response.text(64 * 1024));
      }
      if (!response
          .headers()
          .first("Sec-WebSocket-Accept")
          .equals(Optional.of(WebSocket.accept(key)))) {
        throw new WireException(Fault.MALFORMED, endpoint + " answered another handshake");
      }
      return new WebSocket(connection, random);
    } catch (IOException | RuntimeException e) {
      connection.close();
      throw e;
    }
  }

  /// Upgrades a connection to raw bytes.
  ///
  /// @param protocol value of the Upgrade header
  /// @throws RefusedException when the server answered with something else
  public RawConnection upgrade(String target, String protocol, Headers headers) throws IOException {
    WireRequest request =
        new WireRequest(
                "GET", target, headers, new Body.Empty(), Optional.empty(), Optional.empty())
            .header("Upgrade", protocol);
    Connection connection = Connection.open(endpoint, Optional.empty(), Optional.empty());
    try {
      connection.write(head(request));
      WireResponse response = readHead(connection, "GET");
      if (response.status() != 101) {
        throw new RefusedException(response.status(), response.text(64 * 1024));
      }
      return new RawConnection(connection);
    } catch (IOException | RuntimeException e) {
      connection.close();
      throw e;
    }
  }

  private static WireResponse answerAfter(
      WireException cutOff, Connection connection, WireRequest request) throws WireException {
    try {
      return readHead(connection, request.method());
    } catch (WireException e) {
      cutOff.addSuppressed(e);
      throw cutOff;
    }
  }

  private String head(WireRequest request) {
    StringBuilder head = new StringBuilder(256);
    head.append(request.method()).append(' ').append(request.target()).append(" HTTP/1.1\r\n");
    if (request.headers().first("Host").isEmpty()) {
      head.append("Host: ").append(endpoint.authority()).append("\r\n");
    }
    boolean upgrade = request.headers().first("Upgrade").isPresent();
    head.append("Connection: ").append(upgrade ? "Upgrade" : "close").append("\r\n");
    for (Headers.Field field : request.headers().all()) {
      head.append(field.name()).append(": ").append(field.value()).append("\r\n");
    }
    OptionalLong length =
        switch (request.body()) {
          case Body.Empty _ ->
              request.method().equals("GET") || request.method().equals("HEAD")
                  ? OptionalLong.empty()
                  : OptionalLong.of(0);
          case Body.Bytes(byte[] bytes) -> OptionalLong.of(bytes.length);
          case Body.Stream(InputStream _, OptionalLong known) -> known;
        };
    if (length.isPresent()) {
      head.append("Content-Length: ").append(length.getAsLong()).append("\r\n");
    } else if (request.body() instanceof Body.Stream) {
      head.append("Transfer-Encoding: chunked\r\n");
    }
    return head.append("\r\n").toString();
  }

  private static void sendBody(Connection connection, Body body) throws IOException {
    switch (body) {
      case Body.Empty _ -> {}
      case Body.Bytes(byte[] bytes) -> connection.write(bytes, 0, bytes.length);
      case Body.Stream(InputStream in, OptionalLong length) -> {
        byte[] buffer = new byte[Connection.BUFFER_BYTES];
        long sent = 0;
        for (int n = in.read(buffer); n >= 0; n = in.read(buffer)) {
          if (n == 0) {
            continue;
          }
          sent += n;
          if (length.isPresent()) {
            if (sent > length.getAsLong()) {
              throw new WireException(Fault.MALFORMED, "the body grew while it was sent");
            }
            connection.write(buffer, 0, n);
          } else {
            connection.write(Integer.toHexString(n) + "\r\n");
            connection.write(buffer, 0, n);
            connection.write("\r\n");
          }
        }
        if (length.isEmpty()) {
          connection.write("0\r\n\r\n");
        } else if (sent < length.getAsLong()) {
          throw new WireException(Fault.MALFORMED, "the body shrank while it was sent");
        }
      }
    }
  }

  static WireResponse readHead(Connection connection, String method) throws WireException {
    while (true) {
      String status =
          connection
              .readLine(LINE_BYTES_MAX)
              .orElseThrow(
                  () ->
                      new WireException(
                          Fault.CUT_OFF,
                          connection.endpoint() + " ended the connection without an answer"));
      int code = statusOf(status);
      List<Headers.Field> fields = new ArrayList<>();
      for (String line = headerLine(connection); !line.isEmpty(); line = headerLine(connection)) {
        int colon = line.indexOf(':');
        if (colon <= 0 || fields.size() >= HEADERS_MAX) {
          throw new WireException(Fault.MALFORMED, "the head of the answer is malformed");
        }
        fields.add(new Headers.Field(line.substring(0, colon), line.substring(colon + 1).strip()));
      }
      Headers headers = new Headers(fields);
      if (code >= 100 && code < 200 && code != 101) {
        continue;
      }
      return new WireResponse(code, headers, body(connection, method, code, headers), connection);
    }
  }

  private static String headerLine(Connection connection) throws WireException {
    return connection
        .readLine(LINE_BYTES_MAX)
        .orElseThrow(
            () ->
                new WireException(
                    Fault.CUT_OFF, connection.endpoint() + " ended the connection inside a head"));
  }

  private static int statusOf(String line) throws WireException {
    if (line.startsWith("HTTP/1.") && line.length() >= 12) {
      try {
        return Integer.parseInt(line.substring(9, 12));
      } catch (NumberFormatException e) {
        // Falls through to the one error below.
      }
    }
    throw new WireException(
        Fault.MALFORMED,
        "the answer is not HTTP: " + line.substring(0, Math.min(60, line.length())));
  }

  private static InputStream body(Connection connection, String method, int status, Headers headers)
      throws WireException {
    if (status == 101) {
      return connection.rest();
    }
    if (method.equals("HEAD") || status == 204 || status == 304) {
      return new BodyStream.Fixed(connection, 0);
    }
    Optional<String> coding = headers.first("Transfer-Encoding");
    if (coding.isPresent()) {
      if (!coding.get().toLowerCase(Locale.ROOT).equals("chunked")) {
        throw new WireException(Fault.MALFORMED, "unknown transfer coding " + coding.get());
      }
      return new BodyStream.Chunked(connection);
    }
    Optional<String> length = headers.first("Content-Length");
    if (length.isEmpty()) {
      return new BodyStream.UntilClose(connection);
    }
    try {
      long bytes = Long.parseLong(length.get());
      if (bytes >= 0) {
        return new BodyStream.Fixed(connection, bytes);
      }
    } catch (NumberFormatException e) {
      // Falls through to the one error below.
    }
    throw new WireException(Fault.MALFORMED, "'" + length.get() + "' is no content length");
  }

  /// Percent-encodes one part of a path or query (RFC 3986, all but the unreserved characters).
  public static String encode(String part) {
    StringBuilder out = new StringBuilder(part.length() + 16);
    for (byte b : part.getBytes(StandardCharsets.UTF_8)) {
      char c = (char) (b & 0xff);
      if ((c >= 'a' && c <= 'z')
          || (c >= 'A' && c <= 'Z')
          || (c >= '0' && c <= '9')
          || c == '-'
          || c == '.'
          || c == '_'
          || c == '~') {
        out.append(c);
      } else {
        out.append('%')
            .append(Character.toUpperCase(Character.forDigit(c >> 4, 16)))
            .append(Character.toUpperCase(Character.forDigit(c & 15, 16)));
      }
    }
    return out.toString();
  }
}
