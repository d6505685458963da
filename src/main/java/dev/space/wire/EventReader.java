package dev.space.wire;

import dev.space.wire.WireException.Fault;
import java.io.BufferedInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.util.Optional;

/// Reads server-sent events (WHATWG HTML, "Server-sent events"). Comments, which servers send to
/// keep connections alive, are passed over.
public final class EventReader {

  /// Length of one event, all its lines together.
  public static final int EVENT_BYTES_MAX = 8 * 1024 * 1024;

  /// One event.
  ///
  /// @param id what `Last-Event-ID` resumes after
  /// @param name `message` when the server named none
  /// @param data its data lines, joined by line feeds
  public record Event(Optional<String> id, String name, String data) {}

  private final InputStream in;
  private boolean afterReturn;

  public EventReader(InputStream body) {
    in = new BufferedInputStream(body, Connection.BUFFER_BYTES);
  }

  /// The next event; empty when the stream ended. An event that was not finished by an empty line
  /// is dropped, as the standard has it.
  public Optional<Event> next() throws IOException {
    Optional<String> id = Optional.empty();
    String name = "message";
    StringBuilder data = new StringBuilder();
    boolean any = false;
    int size = 0;
    while (true) {
      Optional<String> read = line(EVENT_BYTES_MAX - size);
      if (read.isEmpty()) {
        return Optional.empty();
      }
      String line = read.get();
      size += line.length();
      if (line.isEmpty()) {
        if (any) {
          return Optional.of(new Event(id, name, data.toString()));
        }
        id = Optional.empty();
        name = "message";
        continue;
      }
      int colon = line.indexOf(':');
      String field = colon < 0 ? line : line.substring(0, colon);
      String value = colon < 0 ? "" : line.substring(colon + 1);
      if (value.startsWith(" ")) {
        value = value.substring(1);
      }
      switch (field) {
        case "data" -> {
          if (any) {
            data.append('\n');
          }
          data.append(value);
          any = true;
        }
        case "event" -> name = value;
        case "id" -> id = Optional.of(value);
        default -> {
          // A comment, or a field this reader has no use for.
        }
      }
    }
  }

  private Optional<String> line(int bytesMax) throws IOException {
    ByteArrayOutputStream line = new ByteArrayOutputStream(256);
    while (true) {
      int c = in.read();
      if (c == '\n' && afterReturn) {
        afterReturn = false;
        continue;
      }
      afterReturn = c == '\r';
      if (c < 0) {
        return Optional.empty();
      }
      if (c == '\n' || c == '\r') {
        return Optional.of(line.toString(StandardCharsets.UTF_8));
      }
      if (line.size() >= bytesMax) {
        throw new WireException(
            Fault.MALFORMED, "an event is longer than " + EVENT_BYTES_MAX + " bytes");
      }
      line.write(c);
    }
  }
}
