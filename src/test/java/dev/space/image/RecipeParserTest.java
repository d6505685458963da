package dev.space.image;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.SpaceException;
import dev.space.core.template.Resources;
import dev.space.core.template.TemplateRef;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class RecipeParserTest {

  @Test
  void readsEveryKey() {
    Recipe recipe =
        RecipeParser.parse(
            """
            name: web/app
            from: base:latest
            packages: [nginx, "python3-pip=1.2-3"]
            files:
              - src: conf
                dest: /etc/app
              - {src: bin/run.sh, dest: /usr/local/bin/run, mode: 0755, owner: "user:user"}
            run:
              - "echo 'a: b'"
              - |
                set -x
                true
            user: {name: dev, uid: 1001, home: /srv/dev, sudo: true}
            env: {A: "1", B: two}
            workdir: /srv
            start: [python3, -m, http.server]
            ready: curl -fs localhost:8000
            resources: {vcpus: 2, memory_mib: 1024, disk_mib: 8192}
            warm: 3
            """);
    assertThat(recipe.name()).contains("web/app");
    assertThat(recipe.from())
        .isEqualTo(new Recipe.Base.Parent(new TemplateRef.Tagged("base", "latest")));
    assertThat(recipe.packages()).containsExactly("nginx", "python3-pip=1.2-3");
    assertThat(recipe.files())
        .containsExactly(
            new Recipe.AddedFile("conf", "/etc/app", Optional.empty(), "root:root"),
            new Recipe.AddedFile(
                "bin/run.sh", "/usr/local/bin/run", Optional.of(0755), "user:user"));
    assertThat(recipe.run()).containsExactly("echo 'a: b'", "set -x\ntrue\n");
    assertThat(recipe.user()).contains(new Recipe.User("dev", 1001, "/srv/dev", true));
    assertThat(recipe.env()).containsEntry("A", "1").containsEntry("B", "two");
    assertThat(recipe.defaults().start()).contains(List.of("python3", "-m", "http.server"));
    assertThat(recipe.defaults().user()).contains("dev");
    assertThat(recipe.resources()).isEqualTo(new Resources(2, 1024, 8192));
    assertThat(recipe.warm()).isEqualTo(3);
  }

  @Test
  void nothingIsAskedForByAnEmptyRecipe() {
    Recipe recipe = RecipeParser.parse("# nothing\n");
    assertThat(recipe.from()).isEqualTo(new Recipe.Base.Release(Optional.empty()));
    assertThat(recipe.resources()).isEqualTo(Resources.DEFAULT);
    assertThat(recipe.user()).isEmpty();
  }

  @Test
  void startAsTextIsAShellCommand() {
    assertThat(RecipeParser.parse("start: exec app --x").start())
        .contains(List.of("/bin/sh", "-c", "exec app --x"));
  }

  @Test
  void readsTheBaseRecipe() throws IOException {
    Recipe base = RecipeParser.parse(Files.readString(Path.of("templates/base/template.yaml")));
    assertThat(base.user()).contains(new Recipe.User("user", 1000, "/home/user", true));
    assertThat(base.packages()).contains("python3", "git", "sudo");
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      quoteCharacter = '`',
      value = {
        "`x: 1`|line 1|'x' is no known key",
        "`name: a\nfoo: 2`|line 2|'foo'",
        "`user:\n  name: a\n  shell: x`|line 3|'user.shell'",
        "`files:\n  - src: a\n    dest: /b\n    mod: 1`|line 4|'files[0].mod'",
        "`name: Upper`|line 1|lower-case",
        "`from: base`|line 1|base:latest",
        "`packages: nginx`|line 1|must be a list",
        "`packages: [\"a; rm -rf /\"]`|line 1|Debian package",
        "`packages: [\"-o=x\"]`|line 1|Debian package",
        "`run: [\"\"]`|line 1|is empty",
        "`run:\n  - true\n  - echo a: b`|line 3|quotes",
        "`files:\n  - src: ../x\n    dest: /b`|line 2|inside the recipe directory",
        "`files:\n  - src: x\n    dest: b`|line 3|absolute",
        "`files:\n  - src: x\n    dest: /a/../b`|line 3|absolute",
        "`files:\n  - src: x`|line 2|'files[0].dest' is missing",
        "`files:\n  - {src: x, dest: /y, mode: 999}`|line 2|octal",
        "`user: {name: root, uid: 5}`|line 1|uid 0",
        "`user: {name: \"a b\"}`|line 1|account",
        "`env: {\"A-B\": 1}`|line 1|environment variable",
        "`workdir: here`|line 1|absolute",
        "`start: []`|line 1|is empty",
        "`ready: true`|line 1|'start'",
        "`resources: {vcpus: 0}`|line 1|from 1 to 32",
        "`resources: {memory_mib: 99999999999}`|line 1|from 128",
        "`warm: many`|line 1|from 0 to 64",
        "`a: 1\na: 2`|line 2|twice",
        "`- a`|line 1|key: value",
        "`a: [`|template.yaml|no valid YAML",
        "`a: &x [1]\nb: [*x, *x]`|template.yaml|YAML",
      })
  void refusesWithKeyAndLine(String yaml, String where, String what) {
    assertThatThrownBy(() -> RecipeParser.parse(yaml))
        .isInstanceOfSatisfying(
            SpaceException.class,
            e -> {
              assertThat(e.code()).isEqualTo(ErrorCode.RECIPE_INVALID);
              assertThat(e.problem().oneLine()).contains(where).contains(what);
            });
  }
}
