package dev.space.core.template;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.error.SpaceException;
import java.io.BufferedReader;
import java.io.BufferedWriter;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import java.util.function.BooleanSupplier;
import java.util.function.Consumer;
import java.util.stream.Stream;

/// The logs of template builds, a file for each, the last [#KEPT] of them. A log that grows over
/// [#LINES_MAX] lines is cut there, and says so.
public final class BuildLogs {

  static final int KEPT = 100;
  static final long LINES_MAX = 200_000;
  private static final int LINE_CHARS_MAX = 4096;
  private static final int BATCH = 500;

  private final Path directory;
  private final ConcurrentMap<String, Writer> open = new ConcurrentHashMap<>();

  public BuildLogs(Path directory) {
    this.directory = directory;
  }

  /// Starts the log of a build.
  ///
  /// @param progress told each step
  Writer open(String operationId, Consumer<String> progress) {
    try {
      Files.createDirectories(directory);
      forgetOld();
      Writer writer = new Writer(operationId, Files.newBufferedWriter(file(operationId)), progress);
      open.put(operationId, writer);
      return writer;
    } catch (IOException e) {
      throw failed(e);
    }
  }

  /// Writes one build's log. A log that can't be written doesn't end the build.
  final class Writer implements TemplateBuilder.BuildLog, AutoCloseable {
    private final String operationId;
    private final BufferedWriter out;
    private final Consumer<String> progress;
    private long lines;
    private boolean closed;

    Writer(String operationId, BufferedWriter out, Consumer<String> progress) {
      this.operationId = operationId;
      this.out = out;
      this.progress = progress;
    }

    @Override
    public void step(String text) {
      progress.accept(text);
      line("# " + text);
    }

    @Override
    public synchronized void line(String text) {
      if (closed || lines >= LINES_MAX) {
        return;
      }
      lines++;
      String kept = text.substring(0, Math.min(text.length(), LINE_CHARS_MAX));
      try {
        out.write(
            lines == LINES_MAX
                ? "# the log is cut after " + LINES_MAX + " lines"
                : kept.replace('\n', ' '));
        out.newLine();
        out.flush();
      } catch (IOException _) {
        lines = LINES_MAX;
      }
      notifyAll();
    }

    synchronized void awaitAfter(long line) throws InterruptedException {
      while (!closed && lines <= line) {
        wait();
      }
    }

    @Override
    public void close() {
      open.remove(operationId, this);
      synchronized (this) {
        closed = true;
        notifyAll();
      }
      try {
        out.close();
      } catch (IOException _) {
        // Every line was flushed; there is nothing left to lose.
      }
    }
  }

  /// Gives the lines after line `after`, then those that come, until the build is over or the
  /// thread is interrupted.
  ///
  /// @param over whether the operation has ended; may wait a moment for that
  void follow(String operationId, long after, BooleanSupplier over, TemplateService.LogSink sink) {
    long at = Math.max(0, after);
    while (!Thread.currentThread().isInterrupted()) {
      Optional<Writer> writer = Optional.ofNullable(open.get(operationId));
      boolean ended = writer.isEmpty() && over.getAsBoolean();
      List<String> batch = read(operationId, at, ended);
      for (String line : batch) {
        sink.accept(++at, line);
      }
      if (batch.size() == BATCH) {
        continue;
      }
      if (ended) {
        return;
      }
      if (writer.isPresent()) {
        try {
          writer.get().awaitAfter(at);
        } catch (InterruptedException _) {
          Thread.currentThread().interrupt();
        }
      }
    }
  }

  /// Up to `max` lines after line `after` that are there now.
  List<String> soFar(String operationId, long after, int max) {
    List<String> there = read(operationId, after, false);
    return List.copyOf(there.subList(0, Math.min(max, there.size())));
  }

  private List<String> read(String operationId, long after, boolean mustExist) {
    List<String> lines = new ArrayList<>();
    Path file = file(operationId);
    if (!Files.exists(file)) {
      if (mustExist) {
        throw Problem.of(ErrorCode.NOT_FOUND, "the log of this build is kept no more")
            .because("the logs of the last " + KEPT + " builds are kept")
            .remedy("Build it again to see what it says.")
            .toException();
      }
      return lines;
    }
    try (BufferedReader in = Files.newBufferedReader(file)) {
      for (long n = 0; n < after; n++) {
        if (in.readLine() == null) {
          return lines;
        }
      }
      for (String line = in.readLine(); line != null; line = in.readLine()) {
        lines.add(line);
        if (lines.size() == BATCH) {
          break;
        }
      }
      return lines;
    } catch (IOException e) {
      throw failed(e);
    }
  }

  private void forgetOld() throws IOException {
    try (Stream<Path> files = Files.list(directory)) {
      List<Path> old =
          files
              .sorted(Comparator.comparing((Path p) -> p.toFile().lastModified()).reversed())
              .skip(KEPT - 1L)
              .toList();
      for (Path file : old) {
        Files.deleteIfExists(file);
      }
    }
  }

  private Path file(String operationId) {
    return directory.resolve(operationId.replaceAll("[^A-Za-z0-9_-]", "_") + ".log");
  }

  private static SpaceException failed(IOException e) {
    return Problem.of(ErrorCode.INTERNAL, "the build's log can't be read or written")
        .because(String.valueOf(e.getMessage()))
        .toException(e);
  }
}
