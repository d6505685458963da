package dev.space.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
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
}
