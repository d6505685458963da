package dev.space.cli;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.space.cli.LocalService.Done;
import dev.space.http.EventStream;
import dev.space.http.Router;
import dev.space.http.TestServer;
import java.io.ByteArrayOutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import tools.jackson.databind.JsonNode;

/// The command line against a whole service in this process, without VMs.
@Timeout(60)
class CommandLineTest {

  private static final List<String> NEED_NO_EXAMPLE =
      List.of("version", "test", "build", "fmt", "bench", "train");

  @TempDir static Path dir;

  @SuppressWarnings("NullAway") // Set before all tests.
  private static LocalService service;

  @BeforeAll
  static void start() {
    service = LocalService.start(dir, Map.of());
  }

  @AfterAll
  static void stop() {
    service.close();
  }

  @Test
  void runPassesOutputAndExitStatusOnAndDeletesItsSandbox() {
    assertThat(space("run", "--", "echo", "hello").out()).isEqualTo("hello\n");
    assertThat(space("run", "--", "sh", "-c", "exit 3").status()).isEqualTo(3);
    // A daemon takes the delete on and sees to it after the command has ended.
    await().until(() -> space("sandbox", "ls", "-q").out().isEmpty());
  }

  @Test
  void whatFollowsTheFirstWordBelongsToTheCommand() {
    assertThat(space("run", "echo", "-o", "json").out()).isEqualTo("-o json\n");
    String id = space("sandbox", "create").out().strip();
    assertThat(space("exec", id, "--", "echo", "--help").out()).isEqualTo("--help\n");
    assertThat(space("exec", id, "echo", "--help").out()).isEqualTo("--help\n");
    assertThat(space("sandbox", "rm", id).status()).isZero();
  }

  @Test
  void anUnknownCommandIsToldFromAFault() {
    Done unknown = space("run", "--", "no-such-command");
    assertThat(unknown.status()).isEqualTo(127);
    assertThat(unknown.err()).contains("no-such-command");
    assertThat(space("exec", "nosuchsandboxnosuch0", "--", "true").status()).isEqualTo(125);
    assertThat(space("run", "-t", "no-such-template", "--", "true").status()).isEqualTo(125);
  }

  @Test
  void inputGoesInOnlyWhenAsked() {
    byte[] bytes = new byte[70_000];
    for (int i = 0; i < bytes.length; i++) {
      bytes[i] = (byte) i;
    }
    Done passed = space(bytes, "run", "-i", "--", "cat");
    assertThat(passed.bytes()).isEqualTo(bytes);
    assertThat(space(bytes, "run", "--", "cat").bytes()).isEmpty();
  }

  @Test
  void listsAreJsonWhenAskedFor() {
    String id = space("sandbox", "create", "-m", "who=me").out().strip();
    JsonNode list = Json.read(space("sandbox", "ls", "-m", "who=me", "-o", "json").out());
    assertThat(list.path(0).path("id").asString()).isEqualTo(id);
    assertThat(space("sandbox", "ls", "-m", "who=you", "-q").out()).isEmpty();
    assertThat(space("sandbox", "rm", id).out()).isEqualTo(id + "\n");
    assertThat(space("sandbox", "get", id).status()).isEqualTo(1);
  }

  @Test
  void filesGoInAndOutUnchanged() throws Exception {
    String id = space("sandbox", "create").out().strip();
    byte[] bytes = {0, 1, (byte) 0xff, '\n', '\r'};
    Path in = Files.write(dir.resolve("in bytes"), bytes);
    Path out = dir.resolve("out bytes");
    assertThat(space("cp", in.toString(), id + ":/home/user/x").err()).isEmpty();
    assertThat(space("cp", id + ":/home/user/x", out.toString()).err()).isEmpty();
    assertThat(out).hasBinaryContent(bytes);
    assertThat(space("sandbox", "rm", id).status()).isZero();
  }

  @Test
  @DisplayName("behaviour 30: a copy says on a terminal how far it is, and nothing in a pipe")
  void copiesShowTheirProgress() throws Exception {
    String id = space("sandbox", "create").ok();
    Path in = Files.write(dir.resolve("large"), new byte[3 << 20]);
    String back = dir.resolve("large back").toString();
    Done up = service.space(new byte[0], true, "cp", in.toString(), id + ":/home/user/large");
    assertThat(up.err()).contains("sent 3.0 MiB of 3.0 MiB");
    Done down = service.space(new byte[0], true, "cp", id + ":/home/user/large", back);
    assertThat(down.err()).contains("received 3.0 MiB of 3.0 MiB");
    assertThat(down.err()).as("the line is taken away at the end").endsWith("[K");
    assertThat(space("cp", id + ":/home/user/large", back).err()).isEmpty();
    space("sandbox", "rm", id).ok();
  }

  @Test
  void errorsSayWhatToDo() {
    Done usage = space("sandbox", "lss");
    assertThat(usage.status()).isEqualTo(2);
    assertThat(usage.err()).contains("lss").contains("Did you mean: ls?");
    Done nobody = space("sandbox", "ls", "--url", "http://127.0.0.1:1");
    assertThat(nobody.status()).isEqualTo(1);
    assertThat(nobody.err()).contains("No SPACE service answers").contains("space serve");
    assertThat(space("sandbox", "create", "--timeout", "soon").status()).isEqualTo(2);
  }

  @Test
  void everyCommandHasHelpWithItsUsage() {
    for (String name : Main.commandLine(surroundings()).getSubcommands().keySet()) {
      Done help = space(name, "--help");
      assertThat(help.status()).as(name).isZero();
      assertThat(help.out()).as(name).contains("Usage: space " + name);
      if (!NEED_NO_EXAMPLE.contains(name)) {
        assertThat(help.out()).as(name).contains("Examples:");
      }
    }
  }

  @Test
  void theOverviewNamesEveryCommand() throws Exception {
    String overview = Files.readString(LocalService.HOME.resolve("docs/cli.md"));
    for (String name : Main.commandLine(surroundings()).getSubcommands().keySet()) {
      if (!name.equals("train")) { // the launcher's own
        assertThat(overview).as(name).containsPattern("(?m)^\\|.*`" + name + "\\b");
      }
    }
  }

  @Test
  void commandsThatStandForOneInASandboxTellItsExitStatus() {
    for (String name : List.of("run", "exec", "shell", "attach")) {
      assertThat(space(name, "--help").out()).contains("Exit status:").contains("128+n");
    }
  }

  @Test
  void theLogOfABuildIsPrinted() throws Exception {
    Router routes =
        Router.builder()
            .get(
                "/v1/operations/{id}/log",
                exchange -> {
                  EventStream events = exchange.events();
                  events.send("1", "log", "{\"line\":1,\"text\":\"one \\u001b[2J\"}");
                  events.send("2", "log", "{\"line\":2,\"text\":\"two\"}");
                  events.send("", "end", "{\"state\":\"succeeded\"}");
                })
            .build();
    try (var server = new TestServer(routes)) {
      Done log = space("ops", "log", "o1", "--url", server.url(""));
      assertThat(log.out()).isEqualTo("one ?[2J\ntwo\n");
      assertThat(log.status()).isZero();
    }
    String id = space("sandbox", "create").out().strip();
    String other = Json.read(space("ops", "ls", "-o", "json").out()).path(0).path("id").asString();
    Done none = space("ops", "log", other);
    assertThat(none.status()).isEqualTo(1);
    assertThat(none.err()).contains("no template build");
    assertThat(space("sandbox", "rm", id).status()).isZero();
  }

  @Test
  void aSandboxMayBeSuspendedWithoutItsMemoryAndBooted() {
    String id = space("sandbox", "create").out().strip();
    assertThat(space("exec", id, "--", "sh", "-c", "echo kept > /tmp/f").status()).isZero();
    assertThat(space("sandbox", "suspend", "--disk-only", id).status()).isZero();
    assertThat(field(id, "disk_only")).isEqualTo("true");
    assertThat(field(id, "state")).isEqualTo("suspended");
    assertThat(space("sandbox", "wake", id).status()).isZero();
    assertThat(space("exec", id, "--", "cat", "/tmp/f").out()).isEqualTo("kept\n");
    assertThat(field(id, "disk_only")).isEqualTo("false");
    assertThat(space("sandbox", "suspend", id).status()).isZero();
    assertThat(space("sandbox", "wake", "--reboot", id).status()).isZero();
    assertThat(space("exec", id, "--", "cat", "/tmp/f").out()).isEqualTo("kept\n");
    assertThat(space("sandbox", "rm", id).status()).isZero();
  }

  private static String field(String id, String name) {
    return Json.read(space("sandbox", "get", id, "-o", "json").out()).path(name).asString();
  }

  @Test
  void pruneKeepsWhatIsNeeded() {
    String id = space("sandbox", "create").out().strip();
    String digest =
        Json.read(space("sandbox", "get", id, "-o", "json").out())
            .path("template_digest")
            .asString();
    new Api(service.controlUrl(), service.key()).delete("/v1/templates/base/tags/latest");
    try {
      Done pruned = space("prune");
      assertThat(pruned.status()).isZero();
      assertThat(pruned.out()).doesNotContain(digest);
      assertThat(pruned.err()).contains("kept").contains("in use");
    } finally {
      assertThat(space("template", "tag", digest, "base:latest").err()).isEmpty();
      assertThat(space("sandbox", "rm", id).status()).isZero();
    }
  }

  private static Surroundings surroundings() {
    var nothing = new ByteArrayOutputStream();
    return LocalService.surroundings(dir, new byte[0], nothing, nothing, false);
  }

  private static Done space(String... args) {
    return service.space(args);
  }

  private static Done space(byte[] in, String... args) {
    return service.space(in, false, args);
  }
}
