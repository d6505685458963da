package dev.space.host;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.List;
import java.util.function.Consumer;

/// Reads a growing file as lines. A line over 4 KiB is cut; carriage returns end a line too, so
/// that progress meters of tools become lines.
final class LineTail implements AutoCloseable {

  private static final int LINE_BYTES_MAX = 4096;

  private final FileChannel channel;
  private final ByteBuffer buffer = ByteBuffer.allocate(64 * 1024);
  private final ByteArrayOutputStream line = new ByteArrayOutputStream();
  private final ArrayDeque<String> tail = new ArrayDeque<>();
  private final int tailLines;
  private final Consumer<String> sink;

  LineTail(Path file, int tailLines, Consumer<String> sink) throws IOException {
    this.channel = FileChannel.open(file);
    this.tailLines = tailLines;
    this.sink = sink;
  }

  /// Takes what has come since the last call.
  void read() throws IOException {
    while (channel.read(buffer) > 0) {
      buffer.flip();
      while (buffer.hasRemaining()) {
        byte b = buffer.get();
        if (b == '\n' || b == '\r') {
          give();
        } else if (line.size() < LINE_BYTES_MAX) {
          line.write(b);
        }
      }
      buffer.clear();
    }
  }

  /// Gives a last line that has no end.
  void finish() throws IOException {
    read();
    give();
  }

  private void give() {
    if (line.size() == 0) {
      return;
    }
    String text = line.toString(StandardCharsets.UTF_8);
    line.reset();
    tail.addLast(text);
    if (tail.size() > tailLines) {
      tail.removeFirst();
    }
    sink.accept(text);
  }

  List<String> tail() {
    return List.copyOf(tail);
  }

  @Override
  public void close() throws IOException {
    channel.close();
  }
}
