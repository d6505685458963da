package dev.space.cli;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.space.app.ConfigReader;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.InstantSource;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import tools.jackson.databind.JsonNode;

/// The command line against a whole service in this process, without VMs.
@Timeout(60)
class CommandLineTest {

  private static final Path HOME = Path.of("").toAbsolutePath();

  private static final List<String> NEED_NO_EXAMPLE =
      List.of("version", "test", "build", "fmt", "bench", "train");

  @TempDir static Path dir;
  private static Assembly.Running service = new NotYet();

  /// What a command did.
  private record Done(int status, byte[] bytes, String err) {
    String out() {
      return new String(bytes, StandardCharsets.UTF_8);
    }
  }

  @BeforeAll
  static void start() {
    Map<String, String> flags =
        Map.of(
            "data_dir", dir.toString(),
            "listen", "127.0.0.1:0",
            "data_listen", "127.0.0.1:0",
            "e2b.listen", "",
            "vmm", "simulated");
    service =
        new LocalAssembly(surroundings(new byte[0], new ByteArrayOutputStream(), nothing()))
            .start(ConfigReader.read(Optional.empty(), Map.of(), flags, HOME), true);
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
    for (String name :
        Main.commandLine(surroundings(new byte[0], new ByteArrayOutputStream(), nothing()))
            .getSubcommands()
            .keySet()) {
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
    String overview = Files.readString(HOME.resolve("docs/cli.md"));
    for (String name :
        Main.commandLine(surroundings(new byte[0], new ByteArrayOutputStream(), nothing()))
            .getSubcommands()
            .keySet()) {
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
  void pruneKeepsWhatIsNeeded() {
    String id = space("sandbox", "create").out().strip();
    String digest =
        Json.read(space("sandbox", "get", id, "-o", "json").out())
            .path("template_digest")
            .asString();
    Location location =
        new Location(
            surroundings(new byte[0], new ByteArrayOutputStream(), nothing()),
            Optional.empty(),
            Optional.empty());
    new Api(location.url(), location.key()).delete("/v1/templates/base/tags/latest");
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

  private static Done space(String... args) {
    return space(new byte[0], args);
  }

  private static Done space(byte[] in, String... args) {
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    ByteArrayOutputStream err = new ByteArrayOutputStream();
    List<String> all = new ArrayList<>(List.of(args));
    int status = Main.run(surroundings(in, out, err), all.toArray(String[]::new));
    return new Done(status, out.toByteArray(), err.toString(StandardCharsets.UTF_8));
  }

  private static ByteArrayOutputStream nothing() {
    return new ByteArrayOutputStream();
  }

  private static Surroundings surroundings(
      byte[] in, ByteArrayOutputStream out, ByteArrayOutputStream err) {
    return new Surroundings(
        Map.of("SPACE_DATA_DIR", dir.toString()),
        new ByteArrayInputStream(in),
        out,
        new PrintStream(err, true, StandardCharsets.UTF_8),
        false,
        false,
        false,
        HOME,
        InstantSource.system());
  }

  /// Stands for the service before it was started.
  private record NotYet() implements Assembly.Running {
    @Override
    public String controlUrl() {
      return "";
    }

    @Override
    public String dataUrl() {
      return "";
    }

    @Override
    public Optional<String> newKeyFile() {
      return Optional.empty();
    }

    @Override
    public void awaitStop() {}

    @Override
    public void close() {}
  }
}
