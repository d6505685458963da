package dev.space.app;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.space.core.error.SpaceException;
import dev.space.host.Command;
import dev.space.host.Processes;
import dev.space.host.Processes.Finished;
import dev.space.image.TestImages;
import java.io.IOException;
import java.net.URI;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.FileSystemException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.SecureRandom;
import java.time.Duration;
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
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/// E2B's published SDKs, installed by name, against one running service with real VMs. What they
/// check is in `e2b-tests/`.
@Tag("vm")
class SdkTest {

  private static final Path ROOT = Path.of("").toAbsolutePath();
  private static final Path SDKS = ROOT.resolve("target/e2b-sdks");
  private static final String DOMAIN = "e2b.test";
  private static final Duration INSTALL = Duration.ofMinutes(3);
  private static final Duration RUN = Duration.ofMinutes(5);

  /// What of a prepared data directory never changes, so that two may share it.
  private static final List<String> PREPARED = List.of("boot", "kernel", "templates");

  /// What a subclass configures differently.
  static final Map<String, String> SETTINGS = new HashMap<>();

  private static Path data = Path.of("");
  private static Path authority = Path.of("");
  private static Optional<Daemon> daemon = Optional.empty();
  private static Optional<LoopbackProxy> names = Optional.empty();

  @BeforeAll
  static void start() throws IOException {
    assumeTrue(
        runs("python3", "-m", "venv", "--help") && runs("npm", "--version"),
        "Python with venv, or npm, is not there: apt-get install python3-venv npm");
    TestImages.boot();
    TestImages.root();
    data = Files.createTempDirectory("space-e2b-");
    for (String folder : PREPARED) {
      share(TestImages.data().resolve(folder), data.resolve(folder));
    }
    Map<String, String> flags = new HashMap<>();
    flags.put("data_dir", data.toString());
    flags.put("listen", "127.0.0.1:0");
    flags.put("data_listen", "127.0.0.1:0");
    flags.put("e2b.listen", "127.0.0.1:0");
    flags.put("boot.agent", TestImages.agent().toString());
    flags.put("e2b.domain", DOMAIN);
    flags.put("e2b.tls_listen", "127.0.0.1:0");
    authority =
        new Certificates(data, System.getenv(), new SecureRandom()).make(DOMAIN).authority();
    flags.putAll(SETTINGS);
    SpaceConfig config = ConfigReader.read(Optional.empty(), Map.of(), flags, ROOT);
    daemon = Optional.of(Daemon.start(config, ROOT, System.getenv(), false));
    URI secure = URI.create(daemon.flatMap(Daemon::e2bTlsUrl).orElseThrow());
    names = Optional.of(new LoopbackProxy(secure.getPort()));
  }

  @AfterAll
  static void stop() throws IOException {
    if (names.isPresent()) {
      names.get().close();
    }
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
  @CsvSource({"newest, e2b, e2b@latest", "of mid-2026, e2b==2.45.1, e2b@2.45.0"})
  @DisplayName("E2B's Python and JavaScript SDKs")
  void sdksDoWhatTheyDoWithE2b(String name, String python, String javascript) {
    var other = CompletableFuture.supplyAsync(() -> javascript(javascript));
    Finished one = python(python);
    assertThat(one.ok()).as(one.said()).isTrue();
    Finished two = other.join();
    assertThat(two.ok()).as(two.said()).isTrue();
  }

  @Test
  @DisplayName("E2B's command line")
  void theCommandLineDoesWhatItDoesWithE2b() throws IOException {
    Path folder = SDKS.resolve("cli");
    must("npm", "install", "--silent", "--no-save", "--prefix", folder.toString(), "@e2b/cli");
    Map<String, String> cli =
        Map.of(
            "CLI", folder.resolve("node_modules/.bin/e2b").toString(),
            "NODE", node(),
            "HOME", Files.createDirectories(folder.resolve("home")).toString());
    Finished done = run(with(cli, toUrls()), "python3", "e2b-tests/cli/suite.py");
    assertThat(done.ok()).as(done.said()).isTrue();
  }

  private static Finished python(String requirement) {
    Path venv = SDKS.resolve("python-" + requirement.replace('=', '-'));
    Path python = venv.resolve("bin/python");
    if (!Files.exists(python)) {
      must("python3", "-m", "venv", venv.toString());
    }
    must(python.toString(), "-m", "pip", "install", "--quiet", "--upgrade", requirement);
    Finished clear = run(toUrls(), python.toString(), "e2b-tests/python/suite.py");
    return clear.ok() ? run(toDomain(), python.toString(), "e2b-tests/python/tls.py") : clear;
  }

  private static Finished javascript(String requirement) {
    Path folder = SDKS.resolve("javascript-" + requirement.replace('@', '-'));
    must("npm", "install", "--silent", "--no-save", "--prefix", folder.toString(), requirement);
    Map<String, String> sdk = Map.of("SDK", folder.resolve("node_modules/e2b").toString());
    Finished clear = run(with(sdk, toUrls()), node(), "e2b-tests/javascript/suite.mjs");
    return clear.ok() ? run(with(sdk, toDomain()), node(), "e2b-tests/javascript/tls.mjs") : clear;
  }

  private static Map<String, String> with(Map<String, String> one, Map<String, String> more) {
    Map<String, String> all = new HashMap<>(one);
    all.putAll(more);
    return all;
  }

  /// One address for everything, in clear text.
  private static Map<String, String> toUrls() {
    String url = daemon.flatMap(Daemon::e2bUrl).orElseThrow();
    return Map.of("E2B_API_URL", url, "E2B_SANDBOX_URL", url);
  }

  /// Nothing but a domain, over TLS.
  private static Map<String, String> toDomain() {
    return Map.of(
        "E2B_DOMAIN", DOMAIN,
        "PROXY", names.orElseThrow().url(),
        "SSL_CERT_FILE", authority.toString(),
        "NODE_EXTRA_CA_CERTS", authority.toString());
  }

  /// The machine's Node, unless it is older than the SDK wants.
  private static String node() {
    if (runs("node", "-e", "process.exit(Number(process.versions.node.split('.')[0]) < 20)")) {
      return "node";
    }
    Path folder = SDKS.resolve("node");
    must("npm", "install", "--silent", "--no-save", "--prefix", folder.toString(), "node@22");
    return folder.resolve("node_modules/node/bin/node").toString();
  }

  private static Finished run(Map<String, String> more, String... argv) {
    Map<String, String> env = new HashMap<>(more);
    try {
      env.put("E2B_API_KEY", Files.readString(data.resolve("api-key")).strip());
    } catch (IOException e) {
      throw new java.io.UncheckedIOException(e);
    }
    env.put("PYTHONDONTWRITEBYTECODE", "1");
    return processes().run(Command.of(RUN, argv).env(env).in(ROOT), System.out::println);
  }

  private static void must(String... argv) {
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

  private static void share(Path from, Path to) throws IOException {
    try (Stream<Path> all = Files.walk(from)) {
      for (Path path : all.toList()) {
        Path target = to.resolve(from.relativize(path).toString());
        if (Files.isDirectory(path)) {
          Files.createDirectories(target);
        } else {
          link(path, target);
        }
      }
    }
  }

  private static void link(Path from, Path to) throws IOException {
    try {
      Files.createLink(to, from);
    } catch (FileAlreadyExistsException e) {
      throw e;
    } catch (FileSystemException e) {
      Files.copy(from, to);
    }
  }
}
