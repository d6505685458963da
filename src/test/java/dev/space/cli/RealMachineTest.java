package dev.space.cli;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.space.host.ProcessIdentity;
import dev.space.image.TestImages;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import tools.jackson.databind.JsonNode;

/// The command line as people use it: processes of their own, real VMs. Few tests of many steps, as
/// all share one data directory and each start costs seconds here.
@Tag("vm")
class RealMachineTest {

  private static final List<String> PREPARED = List.of("kernel", "boot", "templates", "disks");
  private static final byte[] NOTHING = {};
  private static final Duration LONG_POLL = Duration.ofSeconds(60);

  private static Path data = Path.of("");

  /// A data directory whose prepared parts are those of all tests.
  static Path prepared() throws IOException {
    TestImages.boot();
    TestImages.digest();
    Path dir = Files.createTempDirectory("space-cli-");
    for (String part : PREPARED) {
      Path real = Files.createDirectories(TestImages.data().resolve(part));
      Files.createSymbolicLink(dir.resolve(part), real);
    }
    return dir;
  }

  static void remove(Path dir) throws IOException {
    try (Stream<Path> all = Files.walk(dir)) {
      for (Path path : all.sorted(java.util.Comparator.reverseOrder()).toList()) {
        Files.delete(path);
      }
    }
  }

  @BeforeAll
  static void prepare() throws IOException {
    data = prepared();
  }

  @AfterAll
  static void clean() throws IOException {
    remove(data);
  }

  private static SpaceProcess start(byte[] in, String... args) throws IOException {
    Map<String, String> env =
        Map.of(
            "SPACE_BOOT_AGENT", TestImages.agent().toString(),
            "SPACE_LISTEN", "127.0.0.1:0",
            "SPACE_E2B_LISTEN", "",
            "SPACE_DATA_LISTEN", "127.0.0.1:0");
    return SpaceProcess.space(data, env, in, args);
  }

  private static SpaceProcess.Done space(byte[] in, String... args) throws Exception {
    try (SpaceProcess process = start(in, args)) {
      return process.end();
    }
  }

  private static SpaceProcess.Done space(String... args) throws Exception {
    return space(NOTHING, args);
  }

  private static void nothingIsLeft() throws IOException {
    await().atMost(Duration.ofSeconds(20)).until(() -> vms().isEmpty() && processes().isEmpty());
    assertThat(data.resolve("daemon.json")).doesNotExist();
    try (Stream<Path> top = Files.list(data)) {
      assertThat(top.map(Path::toString)).noneMatch(name -> name.endsWith(".partial"));
    }
  }

  private static List<Path> vms() throws IOException {
    Path dir = data.resolve("vms");
    if (!Files.exists(dir)) {
      return List.of();
    }
    try (Stream<Path> all = Files.list(dir)) {
      return all.toList();
    }
  }

  private static List<ProcessIdentity> processes() {
    return ProcessIdentity.all().stream()
        .filter(p -> p.arguments().stream().anyMatch(a -> a.contains(data.toString())))
        .toList();
  }

  @Test
  @DisplayName("behaviours 1, 2, 3, 14: run without a daemon, and nothing is left of it")
  void runWithoutADaemon() throws Exception {
    SpaceProcess.Done three =
        space("run", "--", "sh", "-c", "printf 'a\\000\\377\\nb'; echo why >&2; cat; exit 3");
    assertThat(three.err()).isEqualTo("why\n");
    assertThat(three.status()).isEqualTo(3);
    assertThat(three.bytes()).containsExactly('a', 0, 255, '\n', 'b');
    nothingIsLeft();

    assertThat(space("run", "--", "sh", "-c", "kill -9 $$").status()).isEqualTo(128 + 9);
    SpaceProcess.Done unknown = space("run", "--", "no-such-command");
    assertThat(unknown.status()).isEqualTo(127);
    assertThat(unknown.err()).contains("no-such-command");
    assertThat(space("run", "--", "/etc/passwd").status()).isEqualTo(126);
    nothingIsLeft();

    for (Map.Entry<String, Integer> signal : Map.of("INT", 130, "TERM", 143).entrySet()) {
      try (SpaceProcess run = start(NOTHING, "run", "--", "sh", "-c", "echo up; sleep 300")) {
        run.says("up");
        assertThat(vms()).hasSize(1);
        assertThat(processes()).isNotEmpty();
        run.signal(signal.getKey());
        assertThat(run.end().status()).as(signal.getKey()).isEqualTo(signal.getValue());
      }
      nothingIsLeft();
    }
  }

  @Test
  @DisplayName("behaviour 45: a damaged kernel and a missing QEMU are named with their remedy")
  void aDamagedKernelAndAMissingQemuAreNamed() throws Exception {
    Path own = prepared();
    try {
      Map<String, String> env =
          Map.of(
              "SPACE_BOOT_AGENT",
              TestImages.agent().toString(),
              "SPACE_LISTEN",
              "127.0.0.1:0",
              "SPACE_E2B_LISTEN",
              "",
              "SPACE_QEMU_BINARY",
              "/nonexistent/qemu");
      try (SpaceProcess serve = SpaceProcess.space(own, env, NOTHING, "serve")) {
        SpaceProcess.Done done = serve.end();
        assertThat(done.status()).isEqualTo(1);
        assertThat(done.err()).contains("/nonexistent/qemu").doesNotContain("Exception");
      }
      Files.delete(own.resolve("kernel"));
      String release = Files.readString(data.resolve("kernel/current")).strip();
      Path kernel = Files.createDirectories(own.resolve("kernel").resolve(release));
      Files.writeString(own.resolve("kernel/current"), release);
      Path whole = data.resolve("kernel").resolve(release);
      Files.createSymbolicLink(kernel.resolve("modules"), whole.resolve("modules"));
      Files.copy(whole.resolve("kernel.json"), kernel.resolve("kernel.json"));
      byte[] image = Files.readAllBytes(whole.resolve("vmlinuz"));
      image[image.length / 2] ^= 1;
      Files.write(kernel.resolve("vmlinuz"), image);
      try (SpaceProcess serve = SpaceProcess.space(own, env, NOTHING, "serve")) {
        SpaceProcess.Done done = serve.end();
        assertThat(done.status()).isEqualTo(1);
        assertThat(done.err())
            .contains("kernel", "damaged", "SHA-256", "space setup")
            .doesNotContain("Exception");
      }
      assertThat(own.resolve("daemon.json")).doesNotExist();
    } finally {
      remove(own);
    }
  }

  @Test
  @DisplayName("behaviours 3, 5, 47: everything with a daemon, and nothing is left after it")
  void everythingWithADaemon() throws Exception {
    try (SpaceProcess daemon = start(NOTHING, "serve")) {
      daemon.says("ready");
      JsonNode where = Json.read(Files.readString(data.resolve("daemon.json")));
      theDoctorSaysWhatIsolates(where.path("control_url").asString());
      runUsesIt();
      bytesGoThroughUnchanged();
      templatesAreBuiltAndRemoved();
      String url = where.path("control_url").asString();
      examplesRun(url);
      twentyAtOnce(url);
      daemon.signal("TERM");
      assertThat(daemon.end().status()).isIn(0, 143);
    }
    nothingIsLeft();
  }

  private void theDoctorSaysWhatIsolates(String url) throws Exception {
    JsonNode rows = Json.read(space("doctor", "-o", "json").ok().out());
    JsonNode isolation =
        rows.valueStream()
            .filter(row -> row.path("name").asString().equals("isolation"))
            .findFirst()
            .orElseThrow();
    String served =
        new Api(url, Files.readString(data.resolve("api-key")).strip())
            .get("/v1/node")
            .path("isolation")
            .asString();
    assertThat(served).startsWith("qemu-");
    assertThat(isolation.path("found").asString()).startsWith(served + ": ");
  }

  private void runUsesIt() throws Exception {
    space("run", "--", "true").ok();
    String kinds = space("ops", "ls", "-o", "json").ok().out();
    assertThat(kinds).contains("\"create\"").contains("\"delete\"");
    try (SpaceProcess run = start(NOTHING, "run", "--", "sh", "-c", "echo up; sleep 300")) {
      run.says("up");
      assertThat(space("sandbox", "ls", "-q").ok().out()).isNotBlank();
      run.signal("INT");
      assertThat(run.end().status()).isEqualTo(130);
    }
    await()
        .atMost(Duration.ofSeconds(20))
        .until(() -> space("sandbox", "ls", "-q").ok().out().isEmpty());
  }

  private void bytesGoThroughUnchanged() throws Exception {
    byte[] bytes = new byte[1 << 20];
    new Random(3).nextBytes(bytes);
    String id = space("sandbox", "create").ok().out().strip();
    assertThat(space(bytes, "exec", "-i", id, "--", "cat").ok().bytes()).isEqualTo(bytes);
    assertThat(space(bytes, "exec", id, "--", "cat").ok().bytes()).isEmpty();
    assertThat(space("exec", id, "--", "sh", "-c", "kill -TERM $$").status()).isEqualTo(143);
    JsonNode ops = Json.read(space("ops", "ls", "--sandbox", id, "-o", "json").ok().out());
    space("ops", "wait", ops.path(0).path("id").asString()).ok();
    space("sandbox", "rm", id).ok();
    assertThat(space("exec", id, "--", "true").status()).isEqualTo(125);
  }

  private void templatesAreBuiltAndRemoved() throws Exception {
    Path recipe = Files.createTempDirectory("space-recipe-");
    try {
      Files.writeString(
          recipe.resolve("template.yaml"),
          """
          from: base:latest
          files:
            - {src: hello, dest: /opt/hello}
          env: {GREETING: hi}
          resources: {memory_mib: 256, disk_mib: 256}
          """);
      Files.writeString(recipe.resolve("hello"), "hello from a template\n");
      space("template", "build", recipe.toString(), "-t", "tiny:1").ok();
      SpaceProcess.Done ran =
          space("run", "-t", "tiny:1", "--", "sh", "-c", "cat /opt/hello; echo $GREETING");
      assertThat(ran.ok().out()).isEqualTo("hello from a template\nhi\n");
      space("template", "rm", "tiny:1").ok();
      assertThat(space("run", "-t", "tiny:1", "--", "true").status()).isEqualTo(125);
    } finally {
      remove(recipe);
    }
  }

  private void examplesRun(String url) throws Exception {
    Map<String, String> env = Map.of("SPACE_URL", url, "SPACE_DATA_DIR", data.toString());
    try (SpaceProcess python =
        SpaceProcess.start(List.of("python3", "examples/quickstart.py"), env, NOTHING)) {
      assertThat(python.end().ok().out()).contains("hello from").contains("42");
    }
    try (SpaceProcess shell =
        SpaceProcess.start(List.of("bash", "examples/quickstart.sh"), env, NOTHING)) {
      assertThat(shell.end().ok().out()).contains("event: exit").contains("Linux");
    }
  }

  private void twentyAtOnce(String url) throws Exception {
    Api api = new Api(url, Files.readString(data.resolve("api-key")).strip());
    List<Future<JsonNode>> creates = new ArrayList<>();
    try (ExecutorService each = Executors.newVirtualThreadPerTaskExecutor()) {
      for (int n = 0; n < 20; n++) {
        creates.add(
            each.submit(
                () -> {
                  JsonNode operation =
                      api.post("/v1/sandboxes", Json.object().put("template", "base"));
                  while (List.of("pending", "running")
                      .contains(operation.path("state").asString())) {
                    String id = operation.path("id").asString();
                    operation = api.get("/v1/operations/" + id + "?wait=30s", LONG_POLL);
                  }
                  return operation;
                }));
      }
    }
    List<String> rm = new ArrayList<>(List.of("sandbox", "rm"));
    for (Future<JsonNode> create : creates) {
      assertThat(create.get().path("state").asString())
          .as("%s", create.get())
          .isEqualTo("succeeded");
      rm.add(create.get().path("sandbox_id").asString());
    }
    assertThat(vms()).hasSize(20);
    space(rm.toArray(String[]::new)).ok();
    await().atMost(Duration.ofSeconds(60)).until(() -> vms().isEmpty() && processes().isEmpty());
  }
}
