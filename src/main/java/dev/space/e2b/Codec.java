package dev.space.e2b;

import com.google.protobuf.InvalidProtocolBufferException;
import com.google.protobuf.Message;
import com.google.protobuf.util.JsonFormat;
import java.nio.charset.StandardCharsets;

/// How messages stand in bodies: proto3 JSON, which E2B's SDKs send, or binary.
enum Codec {
  JSON("json") {
    @Override
    byte[] encode(Message message) {
      try {
        return PRINTER.print(message).getBytes(StandardCharsets.UTF_8);
      } catch (InvalidProtocolBufferException e) {
        throw new ConnectException(ConnectCode.INTERNAL, "The answer can't be written as JSON");
      }
    }

    @Override
    void decode(byte[] bytes, Message.Builder into) throws InvalidProtocolBufferException {
      PARSER.merge(new String(bytes, StandardCharsets.UTF_8), into);
    }
  },
  PROTO("proto") {
    @Override
    byte[] encode(Message message) {
      return message.toByteArray();
    }

    @Override
    void decode(byte[] bytes, Message.Builder into) throws InvalidProtocolBufferException {
      into.mergeFrom(bytes);
    }
  };

  private static final JsonFormat.Printer PRINTER =
      JsonFormat.printer().omittingInsignificantWhitespace();
  private static final JsonFormat.Parser PARSER = JsonFormat.parser().ignoringUnknownFields();

  private final String wire;

  Codec(String wire) {
    this.wire = wire;
  }

  /// Content type of unary bodies.
  String unaryType() {
    return "application/" + wire;
  }

  /// Content type of streams; the Python SDK compares it to the letter.
  String streamType() {
    return "application/connect+" + wire;
  }

  abstract byte[] encode(Message message);

  abstract void decode(byte[] bytes, Message.Builder into) throws InvalidProtocolBufferException;
}
