package dev.space.vmm.firecracker;

import dev.space.host.Command;
import dev.space.host.Processes;
import dev.space.image.TestImages;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;

/// The stand-in for Firecracker and its jailer that lies in `fake-firecracker/`, built when it is
/// older than its sources.
public final class FakeFirecracker {

  private static final Path SOURCE = Path.of("fake-firecracker").toAbsolutePath();

  private FakeFirecracker() {}

  /// An installed one.
  public record Installed(Path firecracker, Path jailer) {
    /// Changes how it behaves from now on; its README lists what can be set.
    public void behave(String json) {
      for (Path program : List.of(firecracker, jailer)) {
        try {
          Path aside = program.resolveSibling("settings.new");
          Files.writeString(aside, json);
          Files.move(
              aside,
              program.resolveSibling(program.getFileName() + ".json"),
              StandardCopyOption.ATOMIC_MOVE);
        } catch (IOException e) {
          throw new UncheckedIOException(e);
        }
      }
    }
  }

  /// Installs a copy in a directory.
  ///
  /// @param settings as JSON
  public static Installed install(Path directory, String settings) {
    try {
      Files.createDirectories(directory);
      Path program = built();
      Path firecracker = directory.resolve("firecracker");
      Path jailer = directory.resolve("jailer");
      Files.copy(program, firecracker, StandardCopyOption.REPLACE_EXISTING);
      Files.copy(program, jailer, StandardCopyOption.REPLACE_EXISTING);
      Installed installed = new Installed(firecracker.toRealPath(), jailer.toRealPath());
      installed.behave(settings);
      return installed;
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private static synchronized Path built() throws IOException {
    Path program = TestImages.data().resolve("fake-firecracker");
    if (!Files.exists(program) || newestSource() > Files.getLastModifiedTime(program).toMillis()) {
      Files.createDirectories(TestImages.data());
      Map<String, String> env = new HashMap<>(Map.of("CGO_ENABLED", "0"));
      System.getenv()
          .forEach(
              (name, value) -> {
                if (name.startsWith("GO") || name.startsWith("SSL_")) {
                  env.put(name, value);
                }
              });
      var built =
          new Processes(TestImages.withGo())
              .run(
                  Command.of(Duration.ofMinutes(5), "go", "build", "-o", program.toString(), ".")
                      .in(SOURCE)
                      .env(env));
      if (!built.ok()) {
        throw new IllegalStateException("the fake doesn't build: " + built.said());
      }
    }
    return program;
  }

  private static long newestSource() throws IOException {
    try (Stream<Path> all = Files.walk(SOURCE)) {
      long newest = 0;
      for (Path path : all.filter(p -> p.toString().endsWith(".go")).toList()) {
        newest = Math.max(newest, Files.getLastModifiedTime(path).toMillis());
      }
      return newest;
    }
  }
}
