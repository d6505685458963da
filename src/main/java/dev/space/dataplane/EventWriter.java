package dev.space.dataplane;

import dev.space.core.guest.OutputEvent;
import dev.space.core.guest.OutputEvent.Stream;
import dev.space.core.session.OutputReader;
import dev.space.http.EventStream;
import java.util.EnumMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;

/// Writes output events as server-sent events, one flush for a burst. In text mode a character that
/// events divide is sent whole with the later one.
final class EventWriter implements OutputReader {

  private final EventStream to;
  private final boolean text;
  private final Map<Stream, CharacterHold> holds = new EnumMap<>(Stream.class);

  /// @param text whether bytes that are UTF-8 are sent as text
  /// @param tails what came before on each stream
  EventWriter(EventStream to, boolean text, Map<Stream, byte[]> tails) {
    this.to = to;
    this.text = text;
    for (Stream stream : Stream.values()) {
      var hold = new CharacterHold();
      hold.startAfter(tails.getOrDefault(stream, new byte[0]));
      holds.put(stream, hold);
    }
  }

  @Override
  public void accept(List<OutputEvent> burst) {
    for (OutputEvent event : burst) {
      write(event);
    }
    to.flush();
  }

  private void write(OutputEvent event) {
    String id = Long.toString(event.seq());
    switch (event) {
      case OutputEvent.Started started ->
          to.append(id, "started", OutputJson.started(started.pid()));
      case OutputEvent.Bytes bytes -> bytes(id, bytes);
      case OutputEvent.Gap gap -> {
        rest();
        to.append(id, "gap", OutputJson.gap(gap.firstSeq(), gap.seq(), gap.bytes()));
      }
      case OutputEvent.Exited exited -> {
        rest();
        to.append(id, "exit", OutputJson.exit(exited.exit()));
      }
    }
  }

  private void bytes(String id, OutputEvent.Bytes event) {
    if (!text) {
      to.append(id, name(event.stream()), OutputJson.base64(event.data()));
      return;
    }
    byte[] whole = hold(event.stream()).next(event.data());
    if (whole.length > 0) {
      to.append(id, name(event.stream()), OutputJson.text(whole));
    }
  }

  /// Sends what will never be completed. Without an id: whoever comes back gets it once more with
  /// what follows, or knows the end.
  private void rest() {
    for (Stream stream : Stream.values()) {
      byte[] rest = hold(stream).rest();
      if (rest.length > 0) {
        to.append("", name(stream), OutputJson.base64(rest));
      }
    }
  }

  private CharacterHold hold(Stream stream) {
    return holds.computeIfAbsent(stream, _ -> new CharacterHold());
  }

  private static String name(Stream stream) {
    return stream.name().toLowerCase(Locale.ROOT);
  }
}
