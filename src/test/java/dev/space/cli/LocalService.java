package dev.space.cli;

import dev.space.app.ConfigReader;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.io.PrintStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.InstantSource;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;

/// A whole service in this process, without VMs, and the command line that uses it.
final class LocalService implements AutoCloseable {

  static final Path HOME = Path.of("").toAbsolutePath();

  private final Path dir;
  private final Assembly.Running running;

  /// What a command did.
  record Done(int status, byte[] bytes, String err) {
    String out() {
      return new String(bytes, StandardCharsets.UTF_8);
    }

    /// Fails the test unless it succeeded; gives what it printed without the last line's end.
    String ok() {
      if (status != 0) {
        throw new AssertionError("status " + status + ": " + err);
      }
      return out().stripTrailing();
    }
  }

  private LocalService(Path dir, Assembly.Running running) {
    this.dir = dir;
    this.running = running;
  }

  /// @param settings beside the usual ones
  static LocalService start(Path dir, Map<String, String> settings) {
    Map<String, String> flags =
        new HashMap<>(
            Map.of(
                "data_dir", dir.toString(),
                "listen", "127.0.0.1:0",
                "data_listen", "127.0.0.1:0",
                "e2b.listen", "",
                "vmm", "simulated"));
    flags.putAll(settings);
    var nothing = new ByteArrayOutputStream();
    return new LocalService(
        dir,
        new LocalAssembly(surroundings(dir, new byte[0], nothing, nothing, false))
            .start(ConfigReader.read(Optional.empty(), Map.of(), flags, HOME), true));
  }

  String controlUrl() {
    return running.controlUrl();
  }

  String dataUrl() {
    return running.dataUrl();
  }

  String key() {
    try {
      return Files.readString(dir.resolve("api-key")).strip();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  Done space(String... args) {
    return space(new byte[0], false, args);
  }

  /// @param terminal whether messages go to a terminal
  Done space(byte[] in, boolean terminal, String... args) {
    var out = new ByteArrayOutputStream();
    var err = new ByteArrayOutputStream();
    int status = run(in, out, err, terminal, args);
    return new Done(status, out.toByteArray(), err.toString(StandardCharsets.UTF_8));
  }

  /// Runs a command whose output is looked at while it runs.
  int follow(OutputStream out, String... args) {
    return run(new byte[0], out, OutputStream.nullOutputStream(), false, args);
  }

  private int run(byte[] in, OutputStream out, OutputStream err, boolean terminal, String... args) {
    return Main.run(surroundings(dir, in, out, err, terminal), args);
  }

  static Surroundings surroundings(
      Path dir, byte[] in, OutputStream out, OutputStream err, boolean terminal) {
    return new Surroundings(
        Map.of("SPACE_DATA_DIR", dir.toString()),
        new ByteArrayInputStream(in),
        out,
        new PrintStream(err, true, StandardCharsets.UTF_8),
        false,
        false,
        terminal,
        HOME,
        InstantSource.system());
  }

  @Override
  public void close() {
    running.close();
  }
}
