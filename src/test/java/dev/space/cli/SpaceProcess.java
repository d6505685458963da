package dev.space.cli;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;

/// A program as a process of its own, above all the command line as the launcher starts it.
final class SpaceProcess implements AutoCloseable {

  private static final Duration LONGEST = Duration.ofMinutes(4);

  /// What a process did.
  record Done(int status, byte[] bytes, String err) {
    String out() {
      return new String(bytes, StandardCharsets.UTF_8);
    }

    /// Fails the test unless it succeeded.
    Done ok() {
      assertThat(status).as("status; it said: %s", err).isZero();
      return this;
    }
  }

  private final Process process;
  private final Path out;
  private final Path err;

  private SpaceProcess(Process process, Path out, Path err) {
    this.process = process;
    this.out = out;
    this.err = err;
  }

  /// Starts `space` with a data directory.
  static SpaceProcess space(Path dataDir, Map<String, String> env, byte[] in, String... args)
      throws IOException {
    List<String> argv =
        new ArrayList<>(
            List.of(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "-XX:+UseSerialGC",
                "-XX:TieredStopAtLevel=1",
                "-Xmx256m",
                "--enable-native-access=ALL-UNNAMED",
                "-Dspace.home=" + Path.of("").toAbsolutePath(),
                "-cp",
                System.getProperty("java.class.path"),
                "dev.space.cli.Main"));
    argv.addAll(List.of(args));
    Map<String, String> all = new java.util.HashMap<>(env);
    all.put("SPACE_DATA_DIR", dataDir.toString());
    return start(argv, all, in);
  }

  /// Starts any program.
  static SpaceProcess start(List<String> argv, Map<String, String> env, byte[] in)
      throws IOException {
    Path dir = Files.createTempDirectory("space-run-");
    Path input = Files.write(dir.resolve("in"), in);
    Path out = dir.resolve("out");
    Path err = dir.resolve("err");
    ProcessBuilder builder = new ProcessBuilder(argv);
    Map<String, String> variables = builder.environment();
    variables.keySet().removeIf(name -> name.startsWith("SPACE_") || name.startsWith("JAVA_"));
    variables.putAll(env);
    builder.redirectInput(input.toFile());
    builder.redirectOutput(out.toFile());
    builder.redirectError(err.toFile());
    return new SpaceProcess(builder.start(), out, err);
  }

  /// Waits for its end.
  Done end() throws Exception {
    assertThat(process.waitFor(LONGEST.toSeconds(), TimeUnit.SECONDS))
        .as("it ends; so far it said: %s", Files.readString(err))
        .isTrue();
    return new Done(process.exitValue(), Files.readAllBytes(out), Files.readString(err));
  }

  /// Waits until its output, or its messages, contain this.
  void says(String text) {
    await()
        .atMost(LONGEST)
        .until(
            () ->
                !process.isAlive()
                    || Files.readString(out).contains(text)
                    || Files.readString(err).contains(text));
    assertThat(process.isAlive()).as("it runs on; it said: %s", said()).isTrue();
  }

  private String said() {
    try {
      return Files.readString(out) + Files.readString(err);
    } catch (IOException e) {
      return e.toString();
    }
  }

  /// Sends a signal, such as INT.
  void signal(String name) throws Exception {
    // The shell's own: a minimal Debian has no kill(1).
    Process kill =
        new ProcessBuilder("sh", "-c", "kill -" + name + " " + process.pid()).inheritIO().start();
    assertThat(kill.waitFor()).isZero();
  }

  @Override
  public void close() throws IOException {
    process.destroyForcibly();
    process.onExit().join();
    Files.deleteIfExists(out);
    Files.deleteIfExists(err);
    Files.deleteIfExists(out.resolveSibling("in"));
    Files.deleteIfExists(out.getParent());
  }
}
