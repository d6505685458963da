package dev.space.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.DriverManager;
import java.time.InstantSource;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/// What people get wrong, and what their machine lacks: each a message that says what, why and what
/// to do, the right exit status, and nothing half-made.
@Timeout(60)
class BadInputTest {

  private static final Path HOME = Path.of("").toAbsolutePath();

  @TempDir Path dir;

  private record Done(int status, String err) {
    void ok() {
      assertThat(status).as(err).isZero();
    }

    void failed(int wanted, String... words) {
      assertThat(err).contains(words).doesNotContain("Exception", "\tat ");
      assertThat(status).as(err).isEqualTo(wanted);
    }
  }

  private Done space(Map<String, String> env, String... args) {
    Map<String, String> all = new HashMap<>(env);
    all.putIfAbsent("SPACE_DATA_DIR", dir.resolve("data").toString());
    all.putIfAbsent("SPACE_VMM", "simulated");
    all.putIfAbsent("SPACE_LISTEN", "127.0.0.1:0");
    all.putIfAbsent("SPACE_E2B_LISTEN", "");
    all.putIfAbsent("SPACE_DATA_LISTEN", "127.0.0.1:0");
    var err = new ByteArrayOutputStream();
    var surroundings =
        new Surroundings(
            all,
            new ByteArrayInputStream(new byte[0]),
            new ByteArrayOutputStream(),
            new PrintStream(err, true, StandardCharsets.UTF_8),
            false,
            false,
            false,
            HOME,
            InstantSource.system());
    int status = Main.run(surroundings, args);
    return new Done(status, err.toString(StandardCharsets.UTF_8));
  }

  private Done space(String... args) {
    return space(Map.of(), args);
  }

  private List<String> left() throws IOException {
    Path vms = dir.resolve("data/vms");
    List<String> left = new ArrayList<>();
    if (Files.exists(vms)) {
      try (Stream<Path> all = Files.list(vms)) {
        all.forEach(path -> left.add(path.toString()));
      }
    }
    if (Files.exists(dir.resolve("data/daemon.json"))) {
      left.add("daemon.json");
    }
    return left;
  }

  @Test
  void commandsAndTemplates() throws IOException {
    space("run", "-t", "no-such", "--", "true").failed(125, "no-such", "List the templates");
    space("run").failed(2, "CMD", "run --help");
    space("run", "--").failed(2, "CMD");
    space("run", "--", "").failed(125, "The command is empty");
    space("run", "--memory", "99999999", "--", "true").failed(125, "memory_mib", "1048576");
    space("run", "--cpus", "-1", "--", "true").failed(125, "vcpus", "32");
    space("run", "--disk", "99999999999999999999", "--", "true").failed(2, "--disk");
    space("setup", "--template", "cobol").failed(1, "no template 'cobol'", "code-interpreter");
    space("run", "-e", "1BAD=x", "--", "true").failed(125, "env", "no digit first");
    space("run", "--no-such-flag", "--", "true").failed(2, "--no-such-flag");
    assertThat(left()).isEmpty();
  }

  @Test
  void portInUse() throws IOException {
    try (var taken = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
      String address = "127.0.0.1:" + taken.getLocalPort();
      space("serve", "--listen", address).failed(1, address, "listen");
      space("serve", "--data-listen", address).failed(1, address, "listen");
    }
    assertThat(left()).isEmpty();
    space("run", "--", "true").ok();
  }

  @Test
  void dataDirectories() throws IOException {
    Path file = Files.createFile(dir.resolve("file"));
    space("serve", "--data-dir", file + "/below").failed(1, file.toString(), "--data-dir");
    space("serve", "--data-dir", file.toString()).failed(1, file.toString(), "--data-dir");
    space("serve", "--data-dir", "/proc/space").failed(1, "/proc/space", "--data-dir");
    String deep = "/tmp/" + "x".repeat(100);
    space("serve", "--data-dir", deep).failed(1, "too long", "--data-dir");
    assertThat(Path.of(deep)).doesNotExist();
  }

  @Test
  void aDataDirectoryOfANewerVersion() throws Exception {
    space("run", "--", "true").ok();
    Path database = dir.resolve("data/space.db");
    try (var sql = DriverManager.getConnection("jdbc:sqlite:" + database);
        var statement = sql.createStatement()) {
      statement.executeUpdate(
          "INSERT INTO flyway_schema_history SELECT 1000, '999', 'of tomorrow', type, 'V999__x.sql',"
              + " checksum, installed_by, installed_on, 1, 1 FROM flyway_schema_history LIMIT 1");
    }
    byte[] before = Files.readAllBytes(database);
    space("serve").failed(1, "newer version");
    assertThat(Files.readAllBytes(database)).isEqualTo(before);
    assertThat(left()).isEmpty();
  }

  @Test
  void settings() throws IOException {
    space("serve", "--set", "limits.vms_maximum=1")
        .failed(1, "limits.vms_maximum", "limits.vms_max");
    space("serve", "--listen", "everywhere").failed(1, "listen", "host:port");
    Path file = Files.writeString(dir.resolve("c.yaml"), "listen: [");
    space("serve", "--config", file.toString()).failed(1, file.toString(), "YAML");
    space("serve", "--config", dir.resolve("none").toString()).failed(1, "none");
    assertThat(dir.resolve("data")).doesNotExist();
  }

  @Test
  void noDiskSpace() throws IOException {
    Map<String, String> full = Map.of("SPACE_LIMITS_DISK_RESERVE_MIB", "1000000000");
    space(full, "run", "--", "true").failed(125, "MiB");
    assertThat(left()).isEmpty();
    space("run", "--", "true").ok();
  }

  @Test
  void aMachineThatIsNotPrepared() throws IOException {
    Map<String, String> real = Map.of("SPACE_VMM", "qemu");
    space(real, "serve").failed(1, "guest kernel", "base template", "space setup");
    assertThat(left()).isEmpty();
  }

  @Test
  void keysAndAddresses() {
    space(Map.of("SPACE_URL", "http://127.0.0.1:1", "SPACE_API_KEY", "x"), "sandbox", "ls")
        .failed(1, "127.0.0.1:1", "space serve");
    space(Map.of("SPACE_URL", "nonsense", "SPACE_API_KEY", "x"), "sandbox", "ls")
        .failed(1, "nonsense");
    space("sandbox", "ls").failed(1, "No API key", "SPACE_API_KEY", "space serve");
  }
}
