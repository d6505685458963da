package dev.space.e2b;

import com.google.protobuf.InvalidProtocolBufferException;
import com.google.protobuf.Message;
import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.error.SpaceException;
import dev.space.http.Exchange;
import dev.space.http.Json;
import java.io.DataInputStream;
import java.io.EOFException;
import java.io.IOException;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Optional;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/// The Connect protocol, server side: unary calls and server streams. Errors of streams travel in
/// their last envelope under status 200; a stream whose sandbox died is cut without one, for that
/// is how the SDKs tell a killed sandbox from a failed call.
final class Connect {

  private static final Logger LOG = LoggerFactory.getLogger(Connect.class);
  private static final int MESSAGE_BYTES_MAX = 16 * 1024 * 1024;
  static final byte[] END_OK = {'{', '}'};
  private static final int COMPRESSED = 1;

  private Connect() {}

  /// Answers a unary call.
  @FunctionalInterface
  interface Unary<Q extends Message, A extends Message> {
    A answer(Q request) throws Exception;
  }

  /// Answers a streaming call: writes messages until it returns.
  @FunctionalInterface
  interface Streaming<Q extends Message> {
    void answer(Q request, EnvelopeWriter out) throws Exception;
  }

  static <Q extends Message> void unary(
      Exchange exchange, Q prototype, Unary<Q, ? extends Message> call) throws Exception {
    Optional<Codec> codec = codec(exchange, false);
    if (codec.isEmpty()) {
      throw unsupported(exchange);
    }
    try {
      Message answer =
          call.answer(decode(codec.get(), exchange.bodyBytes(MESSAGE_BYTES_MAX), prototype));
      exchange.send(codec.get().unaryType(), codec.get().encode(answer));
    } catch (SpaceException e) {
      if (gone(e)) {
        throw e;
      }
      unaryError(exchange, ConnectException.of(e));
    } catch (ConnectException e) {
      unaryError(exchange, e);
    }
  }

  /// Whether an error means that the sandbox itself went, which no call of it can answer.
  private static boolean gone(SpaceException e) {
    return switch (e.code()) {
      case SANDBOX_DIED, SANDBOX_NOT_FOUND, GUEST_UNREACHABLE -> true;
      default -> false;
    };
  }

  private static void unaryError(Exchange exchange, ConnectException e) {
    Json.send(exchange, e.code().status(), error(e));
  }

  static <Q extends Message> void stream(Exchange exchange, Q prototype, Streaming<Q> call)
      throws Exception {
    Optional<Codec> codec = codec(exchange, true);
    if (codec.isEmpty()) {
      throw unsupported(exchange);
    }
    byte[] envelope;
    try {
      envelope = readEnvelope(new DataInputStream(exchange.body()));
    } catch (EOFException e) {
      throw Problem.of(ErrorCode.MALFORMED_BODY, "The stream holds no whole envelope")
          .toException(e);
    }
    exchange.idleForever();
    try (var out = new EnvelopeWriter(exchange.stream(codec.get().streamType()), codec.get())) {
      try {
        call.answer(decode(codec.get(), envelope, prototype), out);
        out.end(END_OK);
      } catch (SpaceException e) {
        if (gone(e)) {
          LOG.info("{} is cut: {}", exchange.rawPath(), e.problem().oneLine());
          exchange.abort();
        } else {
          out.end(endError(ConnectException.of(e)));
        }
      } catch (ConnectException e) {
        out.end(endError(e));
      }
    }
  }

  /// Reads the next envelope of a client stream.
  static byte[] readEnvelope(DataInputStream in) throws IOException {
    int flags = in.readUnsignedByte();
    int length = in.readInt();
    if ((flags & COMPRESSED) != 0) {
      throw Problem.of(ErrorCode.UNSUPPORTED_MEDIA_TYPE, "Compressed envelopes are not taken")
          .remedy("Send Connect-Content-Encoding: identity.")
          .toException();
    }
    if (length < 0 || length > MESSAGE_BYTES_MAX) {
      throw Problem.of(
              ErrorCode.BODY_TOO_LARGE, "An envelope holds at most " + MESSAGE_BYTES_MAX + " bytes")
          .toException();
    }
    byte[] body = in.readNBytes(length);
    if (body.length < length) {
      throw new EOFException();
    }
    return body;
  }

  static <Q extends Message> Q decode(Codec codec, byte[] bytes, Q prototype) {
    Message.Builder builder = prototype.newBuilderForType();
    try {
      if (bytes.length > 0) {
        codec.decode(bytes, builder);
      }
      @SuppressWarnings("unchecked")
      Q message = (Q) builder.build();
      return message;
    } catch (InvalidProtocolBufferException e) {
      throw new ConnectException(
          ConnectCode.INVALID_ARGUMENT, "The request can't be read: " + e.getMessage());
    }
  }

  static Optional<Codec> codec(Exchange exchange, boolean stream) {
    String type = exchange.header("Content-Type").orElse("").split(";")[0].strip();
    for (Codec codec : Codec.values()) {
      if (type.equalsIgnoreCase(stream ? codec.streamType() : codec.unaryType())) {
        return Optional.of(codec);
      }
    }
    return Optional.empty();
  }

  static SpaceException unsupported(Exchange exchange) {
    return Problem.of(
            ErrorCode.UNSUPPORTED_MEDIA_TYPE,
            "The content type '"
                + exchange.header("Content-Type").orElse("")
                + "' does not fit this call")
        .remedy("Unary calls take application/json, streams application/connect+json.")
        .toException();
  }

  /// The last envelope of a stream that failed.
  static byte[] endError(ConnectException e) {
    return Json.bytes(Map.of("error", error(e)));
  }

  private static Map<String, String> error(ConnectException e) {
    Map<String, String> body = new LinkedHashMap<>();
    body.put("code", e.code().wire());
    body.put("message", e.text());
    return body;
  }
}
