package dev.space.dataplane;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.guest.Guest.SignalScope;
import dev.space.core.guest.OutputEvent.Stream;
import dev.space.core.guest.ProcessSpec.PtySize;
import dev.space.core.session.SessionService;
import dev.space.core.session.SessionService.Attachment;
import dev.space.http.Exchange;
import dev.space.http.Json;
import dev.space.http.LastEvent;
import dev.space.http.Router;
import dev.space.http.WebSocketOptions;
import java.io.IOException;
import java.io.InputStream;
import java.util.Arrays;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;

/// Attachments to sessions: `/v1/attach/{session_id}`, opened by the session's own token.
final class AttachHandlers {

  static final String PATH = "/v1/attach/{session_id}";

  private static final int CHUNK_BYTES = 64 * 1024;
  private static final int CONTROL_BYTES_MAX = 4096;
  private static final String BEARER = "Bearer ";

  private final SessionService sessions;

  AttachHandlers(SessionService sessions) {
    this.sessions = sessions;
  }

  void addTo(Router.Builder routes) {
    routes
        .get(PATH, this::attach)
        .post(PATH + "/stdin", this::stdin)
        .post(PATH + "/signal", this::signal)
        .post(PATH + "/resize", this::resize);
  }

  private void attach(Exchange exchange) throws InterruptedException {
    var query = exchange.query().allow("token", "after", "encoding");
    Attachment attachment = attachment(exchange);
    long after = LastEvent.seen(exchange, 0);
    boolean text =
        switch (query.one("encoding").orElse("text")) {
          case "text" -> true;
          case "base64" -> false;
          default ->
              throw Problem.of(ErrorCode.INVALID_REQUEST, "There is no such encoding of output.")
                  .remedy("Use encoding=text or encoding=base64.")
                  .toException();
        };
    // A start that fails is an answer with its own status, not a stream.
    attachment.start();
    if (exchange.wantsUpgrade("websocket")) {
      exchange.webSocket(
          WebSocketOptions.DEFAULT,
          socket -> new TerminalTalk(attachment, socket, exchange.requestId()).run(after));
    } else {
      events(exchange, attachment, after, text);
    }
  }

  private static void events(Exchange exchange, Attachment attachment, long after, boolean text)
      throws InterruptedException {
    var tails = text && after > 0 ? attachment.tails(after) : Map.<Stream, byte[]>of();
    // What `read` throws ends the stream with an `error` event. The connection isn't cut after it:
    // over HTTP/2 a reset takes the event along. A stream without `exit` has no exit status.
    attachment.read(after, new EventWriter(exchange.events(), text, tails));
  }

  private void stdin(Exchange exchange) throws IOException {
    var query = exchange.query().allow("token", "offset", "eof");
    Attachment attachment = attachment(exchange);
    long offset = query.integer("offset", -1, 0, Long.MAX_VALUE / 2);
    if (offset < 0) {
      throw Problem.of(ErrorCode.INVALID_REQUEST, "The input has no offset.")
          .remedy("Add ?offset=N: how many bytes were written before; 0 for the first.")
          .toException();
    }
    boolean eof = query.flag("eof", false);
    Json.send(
        exchange, 200, Map.of("next_offset", write(attachment, exchange.body(), offset, eof)));
  }

  private static long write(Attachment attachment, InputStream body, long offset, boolean eof)
      throws IOException {
    byte[] chunk = new byte[CHUNK_BYTES];
    long next = offset;
    long at = offset;
    int n = body.readNBytes(chunk, 0, chunk.length);
    while (n == chunk.length) {
      next = attachment.writeStdin(at, chunk.clone(), false);
      at += n;
      n = body.readNBytes(chunk, 0, chunk.length);
    }
    if (n > 0 || eof || at == offset) {
      next = attachment.writeStdin(at, Arrays.copyOf(chunk, n), eof);
    }
    return next;
  }

  /// @param signal name or number
  /// @param scope `process` (default), `tree` or `foreground`
  record SignalRequest(Object signal, Optional<String> scope) {}

  private void signal(Exchange exchange) {
    exchange.query().allow("token");
    Attachment attachment = attachment(exchange);
    var request = Json.read(exchange, SignalRequest.class, CONTROL_BYTES_MAX);
    attachment.signal(Signals.number(String.valueOf(request.signal())), scope(request.scope()));
    exchange.status(204).sendEmpty();
  }

  static SignalScope scope(Optional<String> scope) {
    return switch (scope.orElse("process").toLowerCase(Locale.ROOT)) {
      case "process" -> SignalScope.PROCESS;
      case "tree" -> SignalScope.TREE;
      case "foreground" -> SignalScope.FOREGROUND;
      default ->
          throw Problem.of(ErrorCode.INVALID_REQUEST, "There is no such scope of a signal.")
              .remedy("Use process, tree or foreground.")
              .toException();
    };
  }

  record ResizeRequest(int cols, int rows) {}

  private void resize(Exchange exchange) {
    exchange.query().allow("token");
    Attachment attachment = attachment(exchange);
    var request = Json.read(exchange, ResizeRequest.class, CONTROL_BYTES_MAX);
    attachment.resize(new PtySize(request.cols(), request.rows()));
    exchange.status(204).sendEmpty();
  }

  private Attachment attachment(Exchange exchange) {
    return sessions.attach(exchange.pathVariable("session_id"), token(exchange));
  }

  private static String token(Exchange exchange) {
    Optional<String> header = exchange.header("Authorization");
    if (header.isPresent() && header.get().regionMatches(true, 0, BEARER, 0, BEARER.length())) {
      return header.get().substring(BEARER.length()).strip();
    }
    return exchange
        .query()
        .one("token")
        .orElseThrow(
            () -> {
              exchange.errorHeader("WWW-Authenticate", "Bearer");
              return Problem.of(ErrorCode.UNAUTHENTICATED, "There is no attachment token.")
                  .remedy("Send the session's attach_token: Authorization: Bearer spat_…")
                  .toException();
            });
  }
}
