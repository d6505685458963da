package dev.space.wire;

import dev.space.wire.WireException.Fault;
import java.io.ByteArrayOutputStream;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.security.SecureRandom;
import java.util.Base64;
import java.util.Optional;

/// The client's end of a WebSocket (RFC 6455). One thread receives, any thread sends. Pings are
/// answered while receiving.
public final class WebSocket implements AutoCloseable {

  /// Length of one message, all its frames together.
  public static final int MESSAGE_BYTES_MAX = 16 * 1024 * 1024;

  /// What comes in.
  public sealed interface Message {
    record Text(String text) implements Message {}

    record Binary(byte[] bytes) implements Message {}

    /// The other side's close, the last message there is.
    record Closed(int code, String reason) implements Message {}
  }

  private static final int CONTINUATION = 0;
  private static final int TEXT = 1;
  private static final int BINARY = 2;
  private static final int CLOSE = 8;
  private static final int PING = 9;
  private static final int PONG = 10;

  /// RFC 6455, section 7.4.1: normal closure, and no status received.
  private static final int NORMAL = 1000;

  private static final int NO_STATUS = 1005;

  private final Connection connection;
  private final SecureRandom random;
  private final Object sending = new Object();
  private boolean closeSent;

  WebSocket(Connection connection, SecureRandom random) {
    this.connection = connection;
    this.random = random;
  }

  static String newKey(SecureRandom random) {
    byte[] nonce = new byte[16];
    random.nextBytes(nonce);
    return Base64.getEncoder().encodeToString(nonce);
  }

  static String accept(String key) {
    try {
      MessageDigest sha1 = MessageDigest.getInstance("SHA-1");
      String salted = key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
      return Base64.getEncoder()
          .encodeToString(sha1.digest(salted.getBytes(StandardCharsets.US_ASCII)));
    } catch (NoSuchAlgorithmException e) {
      throw new AssertionError("every JDK has SHA-1", e);
    }
  }

  public void sendText(String text) throws WireException {
    byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
    send(TEXT, bytes, 0, bytes.length);
  }

  public void sendBinary(byte[] bytes, int offset, int length) throws WireException {
    send(BINARY, bytes, offset, length);
  }

  private void send(int opcode, byte[] bytes, int offset, int length) throws WireException {
    byte[] head = new byte[14];
    int at = 0;
    head[at++] = (byte) (0x80 | opcode);
    if (length < 126) {
      head[at++] = (byte) (0x80 | length);
    } else if (length < 65536) {
      head[at++] = (byte) (0x80 | 126);
      head[at++] = (byte) (length >> 8);
      head[at++] = (byte) length;
    } else {
      head[at++] = (byte) (0x80 | 127);
      for (int shift = 56; shift >= 0; shift -= 8) {
        head[at++] = (byte) ((long) length >> shift);
      }
    }
    byte[] mask = new byte[4];
    random.nextBytes(mask);
    byte[] frame = new byte[at + 4 + length];
    System.arraycopy(head, 0, frame, 0, at);
    System.arraycopy(mask, 0, frame, at, 4);
    for (int i = 0; i < length; i++) {
      frame[at + 4 + i] = (byte) (bytes[offset + i] ^ mask[i & 3]);
    }
    synchronized (sending) {
      if (closeSent) {
        throw new WireException(Fault.CUT_OFF, "the WebSocket is closed");
      }
      closeSent = opcode == CLOSE;
      connection.write(frame, 0, frame.length);
    }
  }

  /// The next message; empty when the connection ended without a close.
  public Optional<Message> receive() throws WireException {
    ByteArrayOutputStream message = new ByteArrayOutputStream();
    int kind = CONTINUATION;
    while (true) {
      int first = connection.read();
      if (first < 0) {
        return Optional.empty();
      }
      int second = need();
      int opcode = first & 15;
      if ((first & 0x70) != 0 || (second & 0x80) != 0) {
        throw new WireException(Fault.MALFORMED, "a WebSocket frame uses what was not agreed on");
      }
      byte[] payload = payload(second & 127, message.size());
      switch (opcode) {
        case PING -> send(PONG, payload, 0, payload.length);
        case PONG -> {}
        case CLOSE -> {
          return Optional.of(closed(payload));
        }
        case TEXT, BINARY, CONTINUATION -> {
          kind = opcode == CONTINUATION ? kind : opcode;
          message.writeBytes(payload);
          if ((first & 0x80) != 0) {
            return Optional.of(
                kind == TEXT
                    ? new Message.Text(message.toString(StandardCharsets.UTF_8))
                    : new Message.Binary(message.toByteArray()));
          }
        }
        default -> throw new WireException(Fault.MALFORMED, "unknown WebSocket frame " + opcode);
      }
    }
  }

  private Message.Closed closed(byte[] payload) {
    int code = payload.length < 2 ? NO_STATUS : (payload[0] & 0xff) << 8 | payload[1] & 0xff;
    String reason =
        payload.length <= 2
            ? ""
            : new String(payload, 2, payload.length - 2, StandardCharsets.UTF_8);
    sendClose();
    return new Message.Closed(code, reason);
  }

  private void sendClose() {
    try {
      send(CLOSE, new byte[] {(byte) (NORMAL >> 8), (byte) NORMAL}, 0, 2);
    } catch (WireException e) {
      // The connection is gone or a close was sent before: both are what closing is for.
    }
  }

  private byte[] payload(int shortLength, int before) throws WireException {
    long length = shortLength;
    int more = shortLength == 126 ? 2 : shortLength == 127 ? 8 : 0;
    if (more > 0) {
      length = 0;
      for (int i = 0; i < more; i++) {
        length = length << 8 | need();
      }
    }
    if (length < 0 || length > MESSAGE_BYTES_MAX - before) {
      throw new WireException(
          Fault.MALFORMED, "a WebSocket message is longer than " + MESSAGE_BYTES_MAX + " bytes");
    }
    byte[] payload = new byte[(int) length];
    for (int at = 0; at < payload.length; ) {
      int n = connection.read(payload, at, payload.length - at);
      if (n < 0) {
        throw cutOff();
      }
      at += n;
    }
    return payload;
  }

  private int need() throws WireException {
    int c = connection.read();
    if (c < 0) {
      throw cutOff();
    }
    return c;
  }

  private WireException cutOff() {
    return new WireException(
        Fault.CUT_OFF, connection.endpoint() + " ended the connection inside a frame");
  }

  @Override
  public void close() {
    sendClose();
    connection.close();
  }
}
