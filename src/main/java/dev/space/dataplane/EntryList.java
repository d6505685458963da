package dev.space.dataplane;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.guest.FileEntry;
import dev.space.http.Exchange;
import dev.space.http.Json;
import java.io.BufferedOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.util.Optional;

/// `{"entries": […]}` written entry by entry, so that a directory of any size takes no memory. The
/// answer begins with the first entry: what fails before has a status of its own.
final class EntryList {

  private static final int BUFFER_BYTES = 64 * 1024;

  private final Exchange exchange;
  private Optional<OutputStream> out = Optional.empty();

  EntryList(Exchange exchange) {
    this.exchange = exchange;
  }

  void add(FileEntry entry) {
    try {
      boolean first = out.isEmpty();
      OutputStream to = begun();
      if (!first) {
        to.write(',');
      }
      to.write(Json.bytes(FileJson.of(entry)));
    } catch (IOException e) {
      throw Problem.of(ErrorCode.CANCELLED, "The client went away.").toException(e);
    }
  }

  void end() throws IOException {
    OutputStream to = begun();
    to.write("]}".getBytes(StandardCharsets.US_ASCII));
    to.flush();
  }

  private OutputStream begun() throws IOException {
    if (out.isEmpty()) {
      OutputStream to = new BufferedOutputStream(exchange.stream(Json.CONTENT_TYPE), BUFFER_BYTES);
      to.write("{\"entries\":[".getBytes(StandardCharsets.US_ASCII));
      out = Optional.of(to);
      return to;
    }
    return out.get();
  }
}
