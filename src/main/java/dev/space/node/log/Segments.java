package dev.space.node.log;

import dev.space.core.guest.OutputEvent;
import dev.space.core.guest.ProcessExit;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/// The files of one log. The first segment is the head, which never goes; those after it are the
/// tail, of which the oldest goes when the tail grows over its bound. Guarded by the log's lock.
final class Segments {

  private static final Logger LOG = LoggerFactory.getLogger(Segments.class);

  private final Path directory;
  private final LogBounds bounds;
  private final List<Segment> all = new ArrayList<>();
  private long tailBytes;
  private Optional<ProcessExit> exit = Optional.empty();

  /// Opens what is there; a torn end is cut off at the last whole record.
  Segments(Path directory, LogBounds bounds) throws IOException {
    this.directory = directory;
    this.bounds = bounds;
    if (Files.isDirectory(directory)) {
      load();
    }
  }

  private void load() throws IOException {
    List<Path> files;
    try (var found = Files.list(directory)) {
      files = found.filter(file -> file.toString().endsWith(Segment.SUFFIX)).sorted().toList();
    }
    for (Path file : files) {
      var segment = Segment.open(file);
      if (segment.isEmpty()) {
        LOG.warn("{}: not a segment, removed", file);
        Files.delete(file);
      } else {
        all.add(segment.get());
      }
    }
    for (int i = 0; i < all.size(); i++) {
      measure(i);
      if (i > 0) {
        tailBytes += all.get(i).length;
      }
    }
  }

  private void measure(int index) throws IOException {
    Segment segment = all.get(index);
    boolean last = index == all.size() - 1;
    if (index > 0 && !last) {
      Segment next = all.get(index + 1);
      segment.lastSeq = next.firstSeq - 1;
      segment.output = next.outputBefore - segment.outputBefore;
      return;
    }
    Segment.Scanned scanned = segment.scan();
    if (scanned.length() < segment.length) {
      LOG.info("{}: torn end of {} bytes cut", segment.file, segment.length - scanned.length());
    }
    segment.lastSeq = scanned.lastSeq();
    segment.output = scanned.output();
    segment.length = scanned.length();
    if (last && scanned.last().orElse(null) instanceof OutputEvent.Exited exited) {
      exit = Optional.of(exited.exit());
    }
  }

  /// Number of the last event; 0 when there is none.
  long lastSeq() {
    return all.isEmpty() ? 0 : all.getLast().lastSeq;
  }

  /// The exit, when it was the last event as the log was opened.
  Optional<ProcessExit> exit() {
    return exit;
  }

  /// Whether so many more bytes go into the next segment; true as long as there is none.
  boolean isFull(long moreBytes) {
    if (all.isEmpty()) {
      return true;
    }
    long most = all.size() == 1 ? bounds.headBytes() : bounds.segmentBytes();
    return all.getLast().length + moreBytes > most;
  }

  /// Whether the oldest segment of the tail has to go before there is another.
  boolean isTailFull() {
    return tailBytes > 0
        && all.size() > 2
        && tailBytes + bounds.segmentBytes() > bounds.tailBytes();
  }

  Segment oldestOfTail() {
    return all.get(1);
  }

  void removeOldestOfTail() throws IOException {
    Segment oldest = oldestOfTail();
    oldest.close();
    Files.deleteIfExists(oldest.file);
    all.remove(oldest);
    tailBytes -= oldest.length;
  }

  /// Begins a segment; its file comes with the first write.
  void rotate(long firstSeq) throws IOException {
    long outputBefore = 0;
    if (!all.isEmpty()) {
      Segment full = all.getLast();
      full.close();
      outputBefore = full.outputBefore + full.output;
    }
    all.add(new Segment(Segment.path(directory, firstSeq), firstSeq, outputBefore));
  }

  /// Counts an event that will be written with the next bytes.
  void appended(OutputEvent event, int size) {
    Segment last = all.getLast();
    last.lastSeq = event.seq();
    last.output += RecordCodec.outputBytes(event);
    if (all.size() > 1) {
      tailBytes += size;
    }
  }

  void write(byte[] bytes, int count) throws IOException {
    Segment last = all.getLast();
    boolean begins = last.length == 0;
    if (begins) {
      Files.createDirectories(directory);
    }
    last.write(bytes, count);
    if (begins && all.size() > 1) {
      tailBytes += Segment.HEADER_BYTES;
    }
  }

  /// Where what follows an event is.
  SegmentedLog.Found find(long afterSeq) {
    long outputBefore = 0;
    for (Segment segment : all) {
      if (segment.lastSeq > afterSeq) {
        if (afterSeq < segment.firstSeq - 1) {
          long missing = segment.outputBefore - outputBefore;
          return new SegmentedLog.Found.Events(
              List.of(new OutputEvent.Gap(segment.firstSeq - 1, 0, afterSeq + 1, missing)));
        }
        return new SegmentedLog.Found.InFile(segment, segment.length);
      }
      outputBefore = segment.outputBefore + segment.output;
    }
    return new SegmentedLog.Found.Nothing();
  }

  void close() throws IOException {
    for (Segment segment : all) {
      segment.close();
    }
  }
}
