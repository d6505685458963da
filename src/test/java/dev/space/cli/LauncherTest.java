package dev.space.cli;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// What `launcher/` says on machines that lack things: its functions in a bash whose PATH has
/// nothing of what is looked for.
class LauncherTest {

  private static final List<String> TOOLS =
      List.of("cat", "dirname", "grep", "head", "mkdir", "mktemp", "rm", "sort", "tail");

  @TempDir private Path dir;

  @BeforeEach
  void tools() throws IOException {
    Files.createDirectories(dir.resolve("bin"));
    for (String name : TOOLS) {
      tool(name, "exec /usr/bin/" + name + " \"$@\"");
    }
  }

  private void tool(String name, String script) throws IOException {
    Path path = dir.resolve("bin").resolve(name);
    Files.writeString(path, "#!/bin/bash\n" + script + "\n");
    assertThat(path.toFile().setExecutable(true)).isTrue();
  }

  private String says(String script) throws Exception {
    String before =
        """
        root=$1 state=$2
        die() { echo "space: $1"; shift; printf '  %s\\n' "$@"; exit 1; }
        source "$root/launcher/tools.sh"
        find_jdk() { return 1; }
        find_go() { old_go=; return 1; }
        """;
    ProcessBuilder builder =
        new ProcessBuilder(
            "/bin/bash",
            "-euo",
            "pipefail",
            "-c",
            before + script,
            "bash",
            Path.of("").toAbsolutePath().toString(),
            dir.resolve("state").toString());
    builder.environment().clear();
    builder.environment().putAll(Map.of("PATH", dir.resolve("bin").toString(), "HOME", "/nowhere"));
    builder.redirectErrorStream(true).redirectInput(Path.of("/dev/null").toFile());
    Process process = builder.start();
    String said = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    process.waitFor();
    return said;
  }

  @Test
  void whoeverMayNotInstallIsToldTheOneCommandForEverything() throws Exception {
    String command = "apt-get update && apt-get install -y --no-install-recommends ";
    assertThat(says("get_maven")).contains(command).contains(" maven golang-go", "mmdebstrap");
    assertThat(says("get_go")).contains(command).contains(" maven golang-go", "mmdebstrap");
    assertThat(says("debian_is_too_old() { return 1; }; get_jdk"))
        .contains(command + "openjdk-25-jdk-headless maven golang-go");
    assertThat(says("debian_is_too_old() { return 0; }; get_jdk"))
        .contains("This Debian has no package of it", ".jdks", command + "maven golang-go")
        .doesNotContain("openjdk-25-jdk-headless");
  }

  @Test
  void anInstallationThatWasCutShortIsFinishedFirst() throws Exception {
    tool("dpkg", "echo dpkg \"$@\" >>" + dir + "/calls; : >" + dir + "/healed");
    tool(
        "apt-get",
        "echo apt-get \"$@\" >>" + dir + "/calls; [[ $* == *update* || -e " + dir + "/healed ]]");
    assertThat(says("can_install() { return 0; }; apt_install maven && echo installed"))
        .contains("installed");
    List<String> calls = Files.readAllLines(dir.resolve("calls"));
    assertThat(calls).hasSize(4);
    assertThat(calls.get(0)).endsWith(" install maven");
    assertThat(calls.get(1)).isEqualTo("dpkg --configure -a");
    assertThat(calls.get(2)).endsWith(" update");
    assertThat(calls.get(3)).endsWith(" install maven");
  }

  @Test
  void whatAnInterruptLeftHalfInstalledIsInstalledAgain() throws Exception {
    tool("apt-get", "echo apt-get \"$@\" >>" + dir + "/calls; kill -KILL $PPID");
    tool("mvn", "exit 1");
    says("can_install() { return 0; }; apt_install default-jdk maven");
    tool("apt-get", "echo apt-get \"$@\" >>" + dir + "/calls");
    says("can_install() { return 0; }; get_maven");
    says("can_install() { return 0; }; get_maven");
    List<String> calls = Files.readAllLines(dir.resolve("calls"));
    assertThat(calls).hasSize(2);
    assertThat(calls.get(1)).endsWith(" install default-jdk maven");
  }

  @Test
  void whatAptSaysIsPassedOn() throws Exception {
    tool("dpkg", "exit 0");
    tool("apt-get", "echo 'E: No space left'; exit 100");
    assertThat(says("can_install() { return 0; }; get_maven"))
        .contains("E: No space left", "Maven is missing");
  }

  /// A program that ends in its own way at a Ctrl-C doesn't end the shell that waits for it.
  @Test
  void anInterruptEndsABuildInsteadOfOneStepOfIt() throws Exception {
    Path checkout = dir.resolve("checkout");
    Files.createDirectories(checkout.resolve("launcher"));
    for (String file : List.of("space", "pom.xml", "launcher/build.sh", "launcher/flags.sh")) {
      Files.copy(Path.of(file), checkout.resolve(file));
    }
    Files.copy(Path.of("launcher/tools.sh"), checkout.resolve("launcher/tools.sh"));
    tool("go", "echo go version go1.26.8 linux/amd64");
    tool("javac", "exit 0");
    tool("java", "sleep 60 & trap 'kill $!; exit 130' INT; : >" + dir + "/started; wait");
    Files.writeString(dir.resolve("release"), "JAVA_VERSION=\"25\"\n");
    Path maven = checkout.resolve(".space/tools/apache-maven-3.9.16/bin/mvn");
    Files.createDirectories(maven.getParent());
    Files.createSymbolicLink(maven, dir.resolve("bin/mvn"));
    tool("mvn", "mkdir -p target/lib; : >target/space.jar");
    ProcessBuilder builder =
        new ProcessBuilder(
            "env", "--default-signal=INT", "setsid", "bash", checkout + "/space", "build");
    Map<String, String> env = builder.environment();
    env.put("PATH", dir.resolve("bin") + ":/usr/bin:/bin");
    env.put("JAVA_HOME", dir.toString());
    env.put("TMPDIR", dir.toString());
    builder.redirectErrorStream(true).redirectOutput(dir.resolve("said").toFile());
    Process process = builder.start();
    await().atMost(Duration.ofSeconds(30)).until(() -> Files.exists(dir.resolve("started")));
    new ProcessBuilder("bash", "-c", "kill -INT -- -" + process.pid()).start().waitFor();
    assertThat(process.waitFor(20, TimeUnit.SECONDS)).isTrue();
    assertThat(process.exitValue()).isEqualTo(130);
    assertThat(dir.resolve("said")).isEmptyFile();
    assertThat(checkout.resolve(".space/dist/current")).doesNotExist();
    try (Stream<Path> left = Files.list(dir)) {
      assertThat(left.filter(p -> p.toString().contains("space-train"))).isEmpty();
    }
  }
}
