package dev.space.dataplane;

import dev.space.core.guest.ProcessExit;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import org.jspecify.annotations.Nullable;

/// The JSON of output, written byte by byte: this is the hot path of the data plane.
final class OutputJson {

  private static final byte[] TEXT = ascii("{\"text\":\"");
  private static final byte[] BASE64 = ascii("{\"base64\":\"");
  private static final byte[] HEX = ascii("0123456789abcdef");
  private static final int ESCAPE_BYTES = 6;

  private OutputJson() {}

  /// `{"text": …}` when the bytes are valid UTF-8, else `{"base64": …}`.
  static byte[] text(byte[] data) {
    byte[] plain = plain(data);
    if (plain != null) {
      return plain;
    }
    byte[] escaped = escaped(data);
    return escaped != null ? escaped : base64(data);
  }

  /// `{"base64": …}`.
  static byte[] base64(byte[] data) {
    byte[] code = Base64.getEncoder().encode(data);
    byte[] json = new byte[BASE64.length + code.length + 2];
    System.arraycopy(BASE64, 0, json, 0, BASE64.length);
    System.arraycopy(code, 0, json, BASE64.length, code.length);
    return closed(json);
  }

  /// The quick case: ASCII without anything to escape but line ends.
  private static byte @Nullable [] plain(byte[] data) {
    int lines = 0;
    for (byte b : data) {
      if (b == '\n') {
        lines++;
      } else if (b < ' ' || b == '"' || b == '\\') {
        return null;
      }
    }
    byte[] json = new byte[TEXT.length + data.length + lines + 2];
    System.arraycopy(TEXT, 0, json, 0, TEXT.length);
    int to = TEXT.length;
    for (byte b : data) {
      if (b == '\n') {
        json[to++] = '\\';
        json[to++] = 'n';
      } else {
        json[to++] = b;
      }
    }
    return closed(json);
  }

  private static byte @Nullable [] escaped(byte[] data) {
    int size = size(data);
    if (size < 0) {
      return null;
    }
    byte[] json = new byte[TEXT.length + size + 2];
    System.arraycopy(TEXT, 0, json, 0, TEXT.length);
    int to = TEXT.length;
    for (byte b : data) {
      to = put(b, json, to);
    }
    return closed(json);
  }

  /// Bytes the escaped text takes; -1 when it isn't UTF-8.
  private static int size(byte[] data) {
    int size = 0;
    int at = 0;
    while (at < data.length) {
      byte b = data[at];
      if (b >= 0) {
        size += b >= ' ' && b != '"' && b != '\\' ? 1 : letter(b) != 0 ? 2 : ESCAPE_BYTES;
        at++;
      } else {
        int length = Utf8.valid(data, at);
        if (length == 0) {
          return -1;
        }
        size += length;
        at += length;
      }
    }
    return size;
  }

  private static int put(byte b, byte[] json, int at) {
    int to = at;
    if (b < 0 || b >= ' ' && b != '"' && b != '\\') {
      json[to++] = b;
      return to;
    }
    json[to++] = '\\';
    byte letter = letter(b);
    if (letter != 0) {
      json[to++] = letter;
      return to;
    }
    json[to++] = 'u';
    json[to++] = '0';
    json[to++] = '0';
    json[to++] = HEX[b >> 4];
    json[to++] = HEX[b & 15];
    return to;
  }

  private static byte letter(byte b) {
    return switch (b) {
      case '"' -> (byte) '"';
      case '\\' -> (byte) '\\';
      case '\n' -> (byte) 'n';
      case '\r' -> (byte) 'r';
      case '\t' -> (byte) 't';
      default -> 0;
    };
  }

  private static byte[] closed(byte[] json) {
    json[json.length - 2] = '"';
    json[json.length - 1] = '}';
    return json;
  }

  static byte[] started(int pid) {
    return ascii("{\"pid\":" + pid + "}");
  }

  static byte[] gap(long firstSeq, long lastSeq, long bytes) {
    return ascii(
        "{\"first_seq\":" + firstSeq + ",\"last_seq\":" + lastSeq + ",\"bytes\":" + bytes + "}");
  }

  /// `{"code": n}` or `{"signal": n, "signal_name": …}`, with what else is true.
  static String exitMembers(ProcessExit exit) {
    String how =
        exit.signal() > 0
            ? "\"signal\":"
                + exit.signal()
                + ",\"signal_name\":\""
                + Signals.name(exit.signal())
                + "\""
            : "\"code\":" + exit.code();
    return how
        + (exit.coreDumped() ? ",\"core_dumped\":true" : "")
        + (exit.timedOut() ? ",\"timed_out\":true" : "");
  }

  static byte[] exit(ProcessExit exit) {
    return ascii("{" + exitMembers(exit) + "}");
  }

  private static byte[] ascii(String text) {
    return text.getBytes(StandardCharsets.US_ASCII);
  }
}
