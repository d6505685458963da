package dev.space.e2b;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.space.core.template.Template;
import dev.space.http.Json;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.junit.jupiter.api.Test;

class BuildStepsTest {

  private static void add(BuildSteps steps, String json) {
    steps.add(Json.mapper().readTree(json));
  }

  @Test
  void stepsBecomeCommandsInTheirOrder() {
    var steps = new BuildSteps(Optional.empty());
    add(steps, "{\"type\":\"ENV\",\"args\":[\"A\",\"1\",\"PATH\",\"/opt/bin:$PATH\"]}");
    add(steps, "{\"type\":\"ENV\",\"args\":[\"A\",\"${A}2\"]}");
    add(steps, "{\"type\":\"WORKDIR\",\"args\":[\"work\"]}");
    add(steps, "{\"type\":\"RUN\",\"args\":[\"echo 'a' > f\"]}");
    add(
        steps,
        "{\"type\":\"COPY\",\"args\":[\"src/a b*\",\"in/\",\"\",\"644\"],\"filesHash\":\"0123456789abcdef\"}");
    add(steps, "{\"type\":\"RUN\",\"args\":[\"id\",\"root\"]}");
    add(steps, "{\"type\":\"USER\",\"args\":[\"root\"]}");
    Map<String, Object> recipe = steps.recipe(Optional.of("serve"), Optional.of("true"));
    @SuppressWarnings("unchecked")
    var run = (List<String>) java.util.Objects.requireNonNull(recipe.get("run"));
    assertThat(run).hasSize(5);
    assertThat(run.get(0)).contains("mkdir -p '/home/user/work'").contains("chown user: ");
    assertThat(run.get(1))
        .startsWith("runuser user -s /bin/bash -c '")
        .contains("export A='\\''12'\\''")
        .contains("/opt/bin:/usr/local/sbin:")
        .contains("cd '\\''/home/user/work'\\''")
        .endsWith("echo '\\''a'\\'' > f'");
    assertThat(run.get(2))
        .contains("d='/home/user/work/in/'")
        .contains("for s in /.e2b-build/0/src/a\\ b*; do")
        .contains("chown -R user: \"$s\"")
        .contains("chmod -R 644");
    assertThat(run.get(3)).startsWith("HOME=/root USER=root /bin/bash -c ").endsWith("id'");
    assertThat(run.get(4)).isEqualTo("rm -rf /.e2b-build");
    assertThat(steps.hashes()).containsExactly("0123456789abcdef");
    assertThat(recipe)
        .containsEntry("files", List.of(Map.of("src", "copy-0", "dest", "/.e2b-build/0")))
        .containsEntry("user", Map.of("name", "root", "uid", 0, "home", "/root"))
        .containsEntry("workdir", "/home/user/work")
        .containsEntry("start", List.of("/bin/bash", "-l", "-c", "serve"))
        .containsEntry("ready", "true");
  }

  @Test
  void whatTheParentHasGoesOn() {
    var parent =
        new Template.Defaults(
            Map.of("P", "1"),
            Optional.of("root"),
            Optional.of("/srv"),
            Optional.empty(),
            Optional.empty(),
            Template.Defaults.NONE.resources(),
            0);
    var steps = new BuildSteps(Optional.of(parent));
    add(steps, "{\"type\":\"ENV\",\"args\":[\"Q\",\"$P\"]}");
    assertThat(steps.recipe(Optional.empty(), Optional.empty()))
        .containsEntry("env", Map.of("P", "1", "Q", "1"))
        .containsEntry("workdir", "/srv")
        .doesNotContainKeys("run", "files", "start", "ready");
  }

  @Test
  void whatCannotBeDoneIsRefused() {
    for (String step :
        List.of(
            "{\"type\":\"VOLUME\",\"args\":[\"/x\"]}",
            "{\"type\":\"RUN\",\"args\":[]}",
            "{\"type\":\"RUN\",\"args\":[\"x\",\"no user\"]}",
            "{\"type\":\"ENV\",\"args\":[\"A B\",\"1\"]}",
            "{\"type\":\"COPY\",\"args\":[\"a\",\"b\",\"$(id)\"]}",
            "{\"type\":\"COPY\",\"args\":[\"a\",\"b\",\"\",\"rwx\"]}")) {
      assertThatThrownBy(() -> add(new BuildSteps(Optional.empty()), step))
          .as(step)
          .isInstanceOf(E2bError.class);
    }
    var other = new BuildSteps(Optional.empty());
    add(other, "{\"type\":\"USER\",\"args\":[\"app\"]}");
    assertThatThrownBy(() -> other.recipe(Optional.empty(), Optional.empty()))
        .isInstanceOf(E2bError.class);
  }
}
