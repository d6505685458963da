package dev.space.app;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.space.core.access.Caller;
import dev.space.core.error.SpaceException;
import dev.space.core.template.Template;
import dev.space.core.template.TemplateBuilder.Built;
import dev.space.core.template.TemplateRef;
import dev.space.host.Command;
import dev.space.host.Processes;
import dev.space.host.Processes.Finished;
import dev.space.image.TestImages;
import dev.space.store.SqliteStore;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/// E2B's published code interpreter SDKs, installed by name, against one running service and the
/// template that ships for them. What they check is in `e2b-tests/`.
@Tag("vm")
@Tag("slow")
class CodeInterpreterTest {

  private static final Path ROOT = Path.of("").toAbsolutePath();
  private static final Path SDKS = ROOT.resolve("target/e2b-sdks");
  private static final Path RECIPE = ROOT.resolve("templates/code-interpreter");
  private static final TemplateRef.Tagged NAME =
      new TemplateRef.Tagged("code-interpreter-v1", "latest");
  private static final Duration INSTALL = Duration.ofMinutes(3);
  private static final Duration RUN = Duration.ofMinutes(5);

  private static Path data = Path.of("");
  private static Optional<Daemon> daemon = Optional.empty();

  @BeforeAll
  static void start() throws IOException {
    assumeTrue(
        runs("python3", "-m", "venv", "--help") && runs("npm", "--version"),
        "python3 with venv and npm are needed");
    TestImages.boot();
    Built built = TestImages.template(RECIPE);
    data = Files.createTempDirectory("space-interpreter-");
    for (String folder : List.of("boot", "kernel", "templates")) {
      share(TestImages.data().resolve(folder), data.resolve(folder));
    }
    register(built);
    Map<String, String> flags = new HashMap<>();
    flags.put("data_dir", data.toString());
    flags.put("listen", "127.0.0.1:0");
    flags.put("data_listen", "127.0.0.1:0");
    flags.put("e2b.listen", "127.0.0.1:0");
    flags.put("boot.agent", TestImages.agent().toString());
    SpaceConfig config = ConfigReader.read(Optional.empty(), Map.of(), flags, ROOT);
    daemon = Optional.of(Daemon.start(config, ROOT, System.getenv(), false));
  }

  private static void register(Built built) {
    Template template =
        new Template(
            built.digest(),
            NAME.name(),
            List.of(NAME.toString()),
            built.defaults(),
            built.rootBytes(),
            Instant.now());
    try (SqliteStore store = SqliteStore.open(data)) {
      store.transact(
          tx -> {
            tx.templates().insert(Caller.DEFAULT_PROJECT, template);
            tx.templates().tag(Caller.DEFAULT_PROJECT, NAME, built.digest());
            return built;
          });
    }
  }

  @AfterAll
  static void stop() throws IOException {
    daemon.ifPresent(Daemon::close);
    if (!data.toString().isEmpty()) {
      try (Stream<Path> all = Files.walk(data)) {
        for (Path path : all.sorted(Comparator.reverseOrder()).toList()) {
          Files.delete(path);
        }
      }
    }
  }

  @ParameterizedTest(name = "{0}")
  @CsvSource({
    "newest, e2b-code-interpreter, @e2b/code-interpreter@latest",
    "of mid-2026, e2b-code-interpreter==2.9.1 e2b==2.45.1, @e2b/code-interpreter@2.7.1 e2b@2.45.0"
  })
  @DisplayName("E2B's code interpreter SDKs for Python and JavaScript")
  void sdksRunCode(String name, String python, String javascript) {
    var other = CompletableFuture.supplyAsync(() -> javascript(name, javascript));
    Finished one = python(name, python);
    Finished two = other.join();
    assertThat(one.ok()).as(one.said()).isTrue();
    assertThat(two.ok()).as(two.said()).isTrue();
  }

  private static Path folder(String kind, String name) {
    return SDKS.resolve("interpreter-" + kind + "-" + name.replace(' ', '-'));
  }

  private static Finished python(String name, String requirements) {
    Path venv = folder("python", name);
    String python = venv.resolve("bin/python").toString();
    if (!Files.exists(venv.resolve("bin/python"))) {
      must(Stream.of("python3", "-m", "venv", venv.toString()), "");
    }
    must(Stream.of(python, "-m", "pip", "install", "--quiet", "--upgrade"), requirements);
    return run(Map.of(), python, "e2b-tests/python/interpreter.py");
  }

  private static Finished javascript(String name, String requirements) {
    Path folder = folder("javascript", name);
    must(
        Stream.of("npm", "install", "--silent", "--no-save", "--prefix", folder.toString()),
        requirements);
    String sdk = folder.resolve("node_modules/@e2b/code-interpreter").toString();
    return run(Map.of("SDK", sdk), "node", "e2b-tests/javascript/interpreter.mjs");
  }

  private static Finished run(Map<String, String> more, String... argv) {
    Map<String, String> env = new HashMap<>(more);
    String url = daemon.flatMap(Daemon::e2bUrl).orElseThrow();
    env.put("E2B_API_URL", url);
    env.put("E2B_SANDBOX_URL", url);
    try {
      env.put("E2B_API_KEY", Files.readString(data.resolve("api-key")).strip());
    } catch (IOException e) {
      throw new java.io.UncheckedIOException(e);
    }
    env.put("PYTHONDONTWRITEBYTECODE", "1");
    return processes().run(Command.of(RUN, argv).env(env).in(ROOT), System.out::println);
  }

  private static void must(Stream<String> words, String requirements) {
    List<String> argv =
        Stream.concat(words, Stream.of(requirements.split(" ")).filter(word -> !word.isEmpty()))
            .toList();
    // Package clients find their registries, proxies and certificates through the environment.
    Finished done = processes().run(Command.of(INSTALL, argv).env(System.getenv()));
    assertThat(done.ok()).as(String.join(" ", argv) + "\n" + done.said()).isTrue();
  }

  private static boolean runs(String... argv) {
    try {
      return processes().run(Command.of(Duration.ofSeconds(30), argv)).ok();
    } catch (SpaceException e) {
      return false;
    }
  }

  private static Processes processes() {
    return new Processes(System.getenv());
  }

  /// What never changes is not copied where a link will do.
  private static void share(Path from, Path to) {
    if (!runs("cp", "-al", from.toString(), to.toString())) {
      must(Stream.of("cp", "-aT", "--sparse=always", from.toString(), to.toString()), "");
    }
  }
}
