package dev.space.cli;

import java.io.FileDescriptor;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.InstantSource;
import java.util.Map;
import java.util.Optional;

/// What a command sees of the process it runs in.
///
/// @param in standard input, unbuffered
/// @param out standard output, unbuffered and byte exact: what guests write goes here
/// @param err messages and progress
/// @param inTerminal whether standard input is a terminal
/// @param home the project's folder
record Surroundings(
    Map<String, String> env,
    InputStream in,
    OutputStream out,
    PrintStream err,
    boolean inTerminal,
    boolean outTerminal,
    boolean errTerminal,
    Path home,
    InstantSource clock) {

  static Surroundings ofProcess() {
    return new Surroundings(
        System.getenv(),
        new FileInputStream(FileDescriptor.in),
        new FileOutputStream(FileDescriptor.out),
        new PrintStream(new FileOutputStream(FileDescriptor.err), true, StandardCharsets.UTF_8),
        isTerminal(0),
        isTerminal(1),
        isTerminal(2),
        Path.of(System.getProperty("space.home", ".")).toAbsolutePath().normalize(),
        InstantSource.system());
  }

  /// A value of the environment that is there and not blank.
  Optional<String> variable(String name) {
    return Optional.ofNullable(env.get(name)).filter(value -> !value.isBlank());
  }

  /// The JDK only tells about all three together; the name of the open file tells about one.
  private static boolean isTerminal(int descriptor) {
    try {
      String name = Files.readSymbolicLink(Path.of("/proc/self/fd/" + descriptor)).toString();
      return name.startsWith("/dev/pts/")
          || name.startsWith("/dev/tty")
          || name.equals("/dev/console");
    } catch (IOException e) {
      return false;
    }
  }
}
