package dev.space.e2b;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.error.SpaceException;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.commons.fileupload2.core.FileUploadException;
import org.apache.commons.fileupload2.core.MultipartInput;

/// Reads `multipart/form-data` part by part, streaming. File names are given raw: E2B's SDKs put
/// whole paths into them.
final class Multipart {

  private static final int HEADER_BYTES_MAX = 64 * 1024;
  private static final Pattern BOUNDARY =
      Pattern.compile("boundary=(?:\"([^\"]{1,200})\"|([^;\\s]{1,200}))", Pattern.CASE_INSENSITIVE);
  private static final Pattern PARAMETER =
      Pattern.compile("[;\\s](name|filename)=(?:\"((?:[^\"\\\\]|\\\\.)*)\"|([^;\\s]*))");

  private Multipart() {}

  /// Takes one part; its body is read to the end, or the rest is skipped, when it returns.
  @FunctionalInterface
  interface PartSink {
    void accept(String name, Optional<String> filename, InputStream body) throws IOException;
  }

  static void read(String contentType, InputStream body, PartSink sink) throws IOException {
    Matcher boundary = BOUNDARY.matcher(contentType);
    if (!boundary.find()) {
      throw malformed("its Content-Type names no boundary");
    }
    String value = boundary.group(1) != null ? boundary.group(1) : boundary.group(2);
    try {
      MultipartInput input =
          MultipartInput.builder()
              .setInputStream(body)
              .setBoundary(value.getBytes(StandardCharsets.UTF_8))
              .setPartHeaderSizeMax(HEADER_BYTES_MAX)
              .get();
      input.setHeaderCharset(StandardCharsets.UTF_8);
      boolean more = input.skipPreamble();
      if (!more) {
        throw malformed("it holds no part");
      }
      while (more) {
        String headers = input.readHeaders();
        try (InputStream part = input.newInputStream()) {
          sink.accept(parameter(headers, "name").orElse(""), parameter(headers, "filename"), part);
        }
        more = input.readBoundary();
      }
    } catch (FileUploadException | IllegalArgumentException e) {
      throw malformed(String.valueOf(e.getMessage()));
    }
  }

  private static Optional<String> parameter(String headers, String wanted) {
    for (String line : headers.split("\r\n")) {
      if (line.regionMatches(true, 0, "Content-Disposition:", 0, 20)) {
        Matcher m = PARAMETER.matcher(line);
        while (m.find()) {
          if (m.group(1).equals(wanted)) {
            return Optional.of(m.group(2) != null ? unescape(m.group(2)) : m.group(3));
          }
        }
      }
    }
    return Optional.empty();
  }

  /// Undoes both ways in which clients write a quote inside a quoted name.
  private static String unescape(String quoted) {
    return quoted.replace("%22", "\"").replaceAll("\\\\(.)", "$1");
  }

  private static SpaceException malformed(String cause) {
    return Problem.of(ErrorCode.MALFORMED_BODY, "The multipart body can't be read")
        .because(cause)
        .toException();
  }
}
