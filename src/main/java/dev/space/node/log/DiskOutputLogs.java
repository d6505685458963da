package dev.space.node.log;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.session.OutputLog;
import dev.space.core.session.OutputLogs;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import java.util.regex.Pattern;

/// Output logs below one directory: `<root>/<sandbox>/<session>/`.
public final class DiskOutputLogs implements OutputLogs {

  private static final Pattern ID = Pattern.compile("[A-Za-z0-9_-]{1,64}");
  private static final String EPOCH = "epoch";

  private final Path root;
  private final LogBounds bounds;

  /// Bytes of memory that all open logs hold.
  private final AtomicLong memory = new AtomicLong();

  public DiskOutputLogs(Path root, LogBounds bounds) {
    this.root = root;
    this.bounds = bounds;
  }

  @Override
  public OutputLog open(String sandboxId, String sessionId) {
    return new SegmentedLog(directory(sandboxId, sessionId), bounds, memory);
  }

  @Override
  public int epoch(String sandboxId, String sessionId) {
    Path file = directory(sandboxId, sessionId).resolve(EPOCH);
    try {
      return Integer.parseInt(Files.readString(file).strip());
    } catch (NoSuchFileException e) {
      return 0;
    } catch (IOException e) {
      throw SegmentedLog.failed("read", e);
    } catch (NumberFormatException e) {
      throw Problem.of(ErrorCode.INTERNAL, "The epoch of a session's tokens is damaged.")
          .because(file + " holds no number")
          .toException(e);
    }
  }

  /// Only ever forward: of two revocations at once the older may come here last.
  @Override
  public synchronized void epoch(String sandboxId, String sessionId, int epoch) {
    Path directory = directory(sandboxId, sessionId);
    try {
      if (epoch <= epoch(sandboxId, sessionId)) {
        return;
      }
      Files.createDirectories(directory);
      Path beside = directory.resolve(EPOCH + ".new");
      Files.writeString(beside, Integer.toString(epoch));
      Files.move(beside, directory.resolve(EPOCH), StandardCopyOption.ATOMIC_MOVE);
    } catch (IOException e) {
      throw SegmentedLog.failed("write", e);
    }
  }

  @Override
  public void delete(String sandboxId, String sessionId) {
    remove(directory(sandboxId, sessionId));
  }

  @Override
  public void delete(String sandboxId) {
    remove(root.resolve(checked(sandboxId)));
  }

  private static void remove(Path directory) {
    List<Path> all;
    try (var found = Files.walk(directory)) {
      all = found.sorted(Comparator.reverseOrder()).toList();
    } catch (NoSuchFileException e) {
      return;
    } catch (IOException e) {
      throw SegmentedLog.failed("delete", e);
    }
    for (Path path : all) {
      try {
        Files.deleteIfExists(path);
      } catch (IOException e) {
        throw SegmentedLog.failed("delete", e);
      }
    }
  }

  /// Bytes of memory that open logs hold, for metrics.
  public long memoryBytes() {
    return memory.get();
  }

  private Path directory(String sandboxId, String sessionId) {
    return root.resolve(checked(sandboxId)).resolve(checked(sessionId));
  }

  private static String checked(String id) {
    if (!ID.matcher(id).matches()) {
      throw Problem.of(ErrorCode.INVALID_REQUEST, "The id holds characters that no id has.")
          .toException();
    }
    return id;
  }
}
