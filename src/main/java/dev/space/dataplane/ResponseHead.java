package dev.space.dataplane;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.error.SpaceException;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/// The head of a server's HTTP/1 response. The server is a guest's, so every bound holds here and
/// what is not plain HTTP is refused.
///
/// @param http10 whether the server speaks HTTP/1.0, where a body ends with the connection
record ResponseHead(int status, boolean http10, List<Map.Entry<String, String>> headers) {

  static final int BYTES_MAX = 64 * 1024;
  static final int HEADERS_MAX = 256;
  private static final String VERSION = "HTTP/1.";
  private static final int STATUS_AT = 9;
  private static final int STATUS_END = 12;

  /// Reads a head up to its empty line and not a byte further.
  ///
  /// @throws SpaceException PORT_CLOSED when the server ends or sends something else
  static ResponseHead read(InputStream in) throws IOException {
    var lines = new Lines(in);
    String first = lines.next();
    if (!first.startsWith(VERSION) || first.length() < STATUS_END) {
      throw bad("it doesn't begin with an HTTP/1 status line");
    }
    char minor = first.charAt(VERSION.length());
    String code = first.substring(STATUS_AT, STATUS_END);
    boolean shape =
        (minor == '0' || minor == '1')
            && first.charAt(STATUS_AT - 1) == ' '
            && (first.length() == STATUS_END || first.charAt(STATUS_END) == ' ');
    if (!shape || !code.matches("[1-5][0-9][0-9]")) {
      throw bad("its status line is malformed");
    }
    var headers = new ArrayList<Map.Entry<String, String>>();
    String line = lines.next();
    while (!line.isEmpty()) {
      if (headers.size() == HEADERS_MAX) {
        throw bad("it has more than " + HEADERS_MAX + " headers");
      }
      headers.add(parse(line));
      line = lines.next();
    }
    return new ResponseHead(Integer.parseInt(code), minor == '0', List.copyOf(headers));
  }

  private static Map.Entry<String, String> parse(String line) {
    int colon = line.indexOf(':');
    if (colon <= 0) {
      throw bad("a header has no name");
    }
    String name = line.substring(0, colon);
    for (int i = 0; i < name.length(); i++) {
      if (!isToken(name.charAt(i))) {
        throw bad("the name of a header holds a character that none has");
      }
    }
    String value = line.substring(colon + 1).strip();
    for (int i = 0; i < value.length(); i++) {
      char c = value.charAt(i);
      if (c < ' ' && c != '\t' || c == 0x7f) {
        throw bad("the value of a header holds a control character");
      }
    }
    return Map.entry(name, value);
  }

  private static boolean isToken(char c) {
    return c >= 'a' && c <= 'z'
        || c >= 'A' && c <= 'Z'
        || c >= '0' && c <= '9'
        || "!#$%&'*+-.^_`|~".indexOf(c) >= 0;
  }

  Optional<String> header(String name) {
    return headers.stream()
        .filter(header -> header.getKey().equalsIgnoreCase(name))
        .map(Map.Entry::getValue)
        .findFirst();
  }

  private static SpaceException bad(String why) {
    return Problem.of(ErrorCode.PORT_CLOSED, "The server on the port doesn't answer in HTTP.")
        .because(why)
        .remedy("Only HTTP servers can be reached through a port route.")
        .toException();
  }

  /// Lines of the head, one byte at a time: the stream is buffered by whoever gives it.
  private static final class Lines {
    private final InputStream in;
    private int left = BYTES_MAX;

    Lines(InputStream in) {
      this.in = in;
    }

    String next() throws IOException {
      byte[] line = new byte[128];
      int length = 0;
      int b = in.read();
      while (b != '\n') {
        if (b < 0) {
          throw bad("it ended within the head of its answer");
        }
        if (--left < 0) {
          throw bad("the head of its answer has more than " + BYTES_MAX + " bytes");
        }
        if (length == line.length) {
          line = java.util.Arrays.copyOf(line, length * 2);
        }
        line[length++] = (byte) b;
        b = in.read();
      }
      if (length > 0 && line[length - 1] == '\r') {
        length--;
      }
      return new String(line, 0, length, StandardCharsets.ISO_8859_1);
    }
  }
}
