package dev.space.dataplane;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.error.SpaceException;
import dev.space.core.guest.Guest;
import dev.space.http.Exchange;
import java.io.BufferedInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.Set;

/// Passes one request on to a server in a guest, and its answer back: HTTP/1.1 with bodies that
/// stream both ways at the same time, and raw bytes after an upgrade. One connection for each
/// request.
///
/// The server sees the Host header as the client sent it, for plain and upgraded requests alike.
final class PortProxy {

  private static final int BUFFER_BYTES = 64 * 1024;

  /// Headers that belong to one connection (RFC 9110, 7.6.1).
  private static final Set<String> HOP_BY_HOP =
      Set.of(
          "connection",
          "keep-alive",
          "proxy-connection",
          "proxy-authenticate",
          "proxy-authorization",
          "te",
          "trailer",
          "transfer-encoding",
          "upgrade");

  private static final String PROTOCOL = "Sec-WebSocket-Protocol";

  private static final Set<String> FORWARDED =
      Set.of("x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-forwarded-prefix");

  /// What is asked of the server.
  ///
  /// @param target path and query for the server
  /// @param prefix what stands before the path in the client's URL; empty for none
  /// @param withheld lower-case names of headers that the server must not see
  /// @param cookies what stands for the client's Cookie header, when it isn't passed as it is
  /// @param subprotocols what stands for the client's web socket subprotocols
  record Request(
      String target,
      String prefix,
      Set<String> withheld,
      Optional<String> cookies,
      Optional<Subprotocols> subprotocols) {}

  /// Subprotocols of a web socket whose client showed its token as one of them.
  ///
  /// @param offered the others
  /// @param token is accepted when the server accepts none: browsers refuse no answer
  record Subprotocols(List<String> offered, String token) {}

  private final Guest guest;
  private final int port;

  PortProxy(Guest guest, int port) {
    this.guest = guest;
    this.port = port;
  }

  /// @param use kept open until all is passed, also after an upgrade
  void pass(Exchange exchange, Request request, AutoCloseable use) throws Exception {
    boolean kept = false;
    Guest.Tunnel tunnel = PortRelay.connect(guest, port);
    try {
      Optional<String> upgrade = upgrade(exchange);
      OutputStream out = tunnel.out();
      out.write(head(exchange, request, upgrade));
      out.flush();
      Thread upload = upload(exchange, tunnel, upgrade.isPresent());
      try {
        InputStream in = new BufferedInputStream(tunnel.in(), BUFFER_BYTES);
        ResponseHead head = finalHead(in);
        if (head.status() == 101) {
          if (upgrade.isEmpty()) {
            throw broken("It changed the protocol though nobody asked for it.");
          }
          kept = true;
          exchange.tunnel(
              upgraded(head, request), client -> PortRelay.run(client, tunnel, in, use));
        } else {
          answer(exchange, head, in);
        }
      } finally {
        if (!kept) {
          upload.interrupt();
        }
      }
    } catch (IOException e) {
      throw exchange.committed() ? e : broken(String.valueOf(e.getMessage()));
    } finally {
      if (!kept) {
        tunnel.close();
        use.close();
      }
    }
  }

  // -- the request

  private static Optional<String> upgrade(Exchange exchange) {
    return exchange
        .header("Upgrade")
        .filter(protocol -> exchange.protocol().equals("HTTP/1.1"))
        .filter(protocol -> exchange.wantsUpgrade(protocol));
  }

  private static byte[] head(Exchange exchange, Request request, Optional<String> upgrade) {
    var head = new StringBuilder();
    head.append(exchange.method()).append(' ').append(request.target()).append(" HTTP/1.1\r\n");
    Optional<String> host = exchange.header("Host").or(exchange::host);
    host.ifPresent(name -> line(head, "Host", name));
    Set<String> named = connectionNames(exchange.headers("Connection"));
    exchange.eachHeader(
        (name, value) -> {
          String lower = name.toLowerCase(Locale.ROOT);
          boolean dropped =
              lower.startsWith(":")
                  || lower.equals("host")
                  || lower.equals("cookie") && request.cookies().isPresent()
                  || lower.equals("sec-websocket-protocol") && request.subprotocols().isPresent()
                  || HOP_BY_HOP.contains(lower)
                  || FORWARDED.contains(lower)
                  || named.contains(lower)
                  || request.withheld().contains(lower)
                  || lower.equals("content-length");
          if (!dropped) {
            line(head, name, value);
          }
        });
    request.cookies().filter(c -> !c.isEmpty()).ifPresent(c -> line(head, "Cookie", c));
    request
        .subprotocols()
        .filter(sub -> !sub.offered().isEmpty())
        .ifPresent(sub -> line(head, PROTOCOL, String.join(", ", sub.offered())));
    line(head, "X-Forwarded-For", forwardedFor(exchange));
    host.ifPresent(name -> line(head, "X-Forwarded-Host", name));
    line(head, "X-Forwarded-Proto", exchange.scheme());
    if (!request.prefix().isEmpty()) {
      line(head, "X-Forwarded-Prefix", request.prefix());
    }
    if (upgrade.isPresent()) {
      line(head, "Connection", "Upgrade");
      line(head, "Upgrade", upgrade.get());
    } else {
      line(head, "Connection", "close");
    }
    if (exchange.contentLength().isPresent()) {
      line(head, "Content-Length", Long.toString(exchange.contentLength().getAsLong()));
    } else if (exchange.hasBody()) {
      line(head, "Transfer-Encoding", "chunked");
    }
    return head.append("\r\n").toString().getBytes(StandardCharsets.ISO_8859_1);
  }

  private static String forwardedFor(Exchange exchange) {
    String client = exchange.remote().getAddress().getHostAddress();
    return exchange.header("X-Forwarded-For").map(before -> before + ", " + client).orElse(client);
  }

  private static void line(StringBuilder head, String name, String value) {
    if (value.indexOf('\r') >= 0 || value.indexOf('\n') >= 0) {
      throw Problem.of(ErrorCode.INVALID_REQUEST, "A header holds a line end.").toException();
    }
    head.append(name).append(": ").append(value).append("\r\n");
  }

  private static Set<String> connectionNames(List<String> lines) {
    var names = new HashSet<String>();
    for (String line : lines) {
      for (String name : line.split(",")) {
        names.add(name.strip().toLowerCase(Locale.ROOT));
      }
    }
    return names;
  }

  /// Passes the request's body on while the answer may come already.
  private static Thread upload(Exchange exchange, Guest.Tunnel tunnel, boolean upgrade) {
    boolean chunked = exchange.contentLength().isEmpty() && exchange.hasBody();
    boolean body = exchange.hasBody() && !upgrade;
    return Thread.ofVirtual()
        .name("port-upload")
        .start(
            () -> {
              try {
                if (body) {
                  send(exchange.body(), tunnel.out(), chunked);
                }
              } catch (IOException | SpaceException e) {
                // The server may have answered without reading all, or the client is gone. A body
                // that isn't whole must not look whole.
                tunnel.close();
              }
            });
  }

  private static void send(InputStream body, OutputStream out, boolean chunked) throws IOException {
    byte[] buffer = new byte[BUFFER_BYTES];
    int n = body.read(buffer);
    while (n >= 0) {
      if (n > 0) {
        if (chunked) {
          out.write((Integer.toHexString(n) + "\r\n").getBytes(StandardCharsets.US_ASCII));
        }
        out.write(buffer, 0, n);
        if (chunked) {
          out.write('\r');
          out.write('\n');
        }
        out.flush();
      }
      n = body.read(buffer);
    }
    if (chunked) {
      out.write("0\r\n\r\n".getBytes(StandardCharsets.US_ASCII));
      out.flush();
    }
  }

  // -- the answer

  /// Interim answers are not passed on: the client gets the one that counts.
  private static ResponseHead finalHead(InputStream in) throws IOException {
    ResponseHead head = ResponseHead.read(in);
    int interim = 0;
    while (head.status() < 200 && head.status() != 101) {
      if (++interim > 8) {
        throw broken("It sends one interim answer after another.");
      }
      head = ResponseHead.read(in);
    }
    return head;
  }

  private static void answer(Exchange exchange, ResponseHead head, InputStream in)
      throws IOException {
    exchange.status(head.status());
    Set<String> named =
        connectionNames(
            head.headers().stream()
                .filter(header -> header.getKey().equalsIgnoreCase("connection"))
                .map(Map.Entry::getValue)
                .toList());
    // The server's own Date and the like take the place of ours.
    var seen = new HashSet<String>();
    for (var header : head.headers()) {
      String lower = header.getKey().toLowerCase(Locale.ROOT);
      if (!HOP_BY_HOP.contains(lower)
          && !named.contains(lower)
          && !lower.equals("content-length")
          && !lower.equals("content-type")) {
        if (seen.add(lower)) {
          exchange.header(header.getKey(), header.getValue());
        } else {
          exchange.addHeader(header.getKey(), header.getValue());
        }
      }
    }
    Optional<Long> length = head.header("Content-Length").map(PortProxy::length);
    if (exchange.method().equals("HEAD") || head.status() == 204 || head.status() == 304) {
      head.header("Content-Type").ifPresent(type -> exchange.header("Content-Type", type));
      if (exchange.method().equals("HEAD")) {
        length.ifPresent(n -> exchange.header("Content-Length", Long.toString(n)));
      }
      exchange.sendEmpty();
      return;
    }
    exchange.idleForever();
    boolean chunked =
        head.header("Transfer-Encoding")
            .filter(coding -> coding.toLowerCase(Locale.ROOT).contains("chunked"))
            .isPresent();
    String type = head.header("Content-Type").orElse("application/octet-stream");
    if (chunked) {
      Bodies.copy(new ChunkedInput(in), exchange.stream(type));
    } else if (length.isPresent()) {
      long sent = Bodies.copy(in, exchange.stream(type, length.get()), length.get());
      if (sent < length.get()) {
        exchange.abort();
      }
    } else {
      Bodies.copy(in, exchange.stream(type));
    }
  }

  private static long length(String text) {
    if (!text.matches("[0-9]{1,18}")) {
      throw broken("Its Content-Length is no number.");
    }
    return Long.parseLong(text);
  }

  // -- after an upgrade

  private static List<Map.Entry<String, String>> upgraded(ResponseHead head, Request request) {
    var headers = new ArrayList<Map.Entry<String, String>>();
    for (var header : head.headers()) {
      if (!header.getKey().equalsIgnoreCase("content-length")
          && !header.getKey().equalsIgnoreCase("transfer-encoding")) {
        headers.add(header);
      }
    }
    if (head.header(PROTOCOL).isEmpty()) {
      request.subprotocols().ifPresent(sub -> headers.add(Map.entry(PROTOCOL, sub.token())));
    }
    return headers;
  }

  private static SpaceException broken(String why) {
    return Problem.of(ErrorCode.PORT_CLOSED, "The server on the port broke off its answer.")
        .because(why)
        .remedy("Look at the server's own log in the sandbox.")
        .toException();
  }
}
