package dev.space.image;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.SpaceException;
import dev.space.core.template.TemplateBuilder.BuildLog;
import dev.space.core.template.TemplateBuilder.Built;
import dev.space.core.template.TemplateBuilder.Staged;
import dev.space.host.Command;
import dev.space.host.Processes;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicReference;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class ImageBuilderTest {

  @TempDir private Path data;
  @TempDir private Path recipe;
  private final Processes commands = new Processes(System.getenv());
  private TemplateStore store = new TemplateStore(Path.of("/nonexistent"), commands);
  private ImageBuilder builder =
      new ImageBuilder(store, Path.of("/nonexistent"), commands, Optional.empty());
  private final Log log = new Log();

  private static final class Log implements BuildLog {
    private final List<String> lines = new CopyOnWriteArrayList<>();

    @Override
    public void step(String text) {
      lines.add(text);
    }

    @Override
    public void line(String text) {
      lines.add(text);
    }
  }

  @BeforeEach
  void makeBuilder() {
    store = new TemplateStore(data, commands);
    // The downloads of other tests are used again.
    builder = new ImageBuilder(store, TestImages.data(), commands, Optional.empty());
  }

  private void recipe(String yaml) throws IOException {
    Files.writeString(recipe.resolve("template.yaml"), yaml);
  }

  private Built build(String yaml) throws IOException {
    recipe(yaml);
    try (Staged staged = builder.stage(recipe)) {
      return staged.build(ref -> ref.toString(), log);
    }
  }

  private List<Path> left() throws IOException {
    try (Stream<Path> entries = Files.list(store.directory())) {
      return entries.toList();
    }
  }

  private String inside(Built built, String request) {
    return commands
        .run(
            Command.of(
                Duration.ofSeconds(20),
                "debugfs",
                "-R",
                request,
                store.root(built.digest()).toString()))
        .said();
  }

  @Test
  void aBadRecipeLeavesNothing() throws IOException {
    assertThatThrownBy(() -> build("packages: 1"))
        .isInstanceOfSatisfying(
            SpaceException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.RECIPE_INVALID));
    assertThat(left()).isEmpty();
    Files.delete(recipe.resolve("template.yaml"));
    assertThatThrownBy(() -> builder.stage(recipe)).hasMessageContaining("template.yaml");
    assertThat(left()).isEmpty();
  }

  @Test
  void theFingerprintFollowsRecipeFilesAndModes() throws IOException {
    recipe("name: a");
    Files.writeString(recipe.resolve("x"), "1");
    String first = ImageBuilder.fingerprint(recipe);
    assertThat(ImageBuilder.fingerprint(recipe)).isEqualTo(first);
    Files.writeString(recipe.resolve("x"), "2");
    String second = ImageBuilder.fingerprint(recipe);
    assertThat(second).isNotEqualTo(first);
    assertThat(recipe.resolve("x").toFile().setExecutable(true)).isTrue();
    assertThat(ImageBuilder.fingerprint(recipe)).isNotEqualTo(second);
  }

  @Test
  void aFileThatTheRecipeLacksIsNamed() {
    assertThatThrownBy(() -> build("files: [{src: gone, dest: /x}]"))
        .isInstanceOfSatisfying(
            SpaceException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.RECIPE_INVALID))
        .hasMessageContaining("gone");
  }

  @Test
  void theSweepLeavesLiveBuildsAlone() throws IOException {
    recipe("name: a");
    try (Staged staged = builder.stage(recipe)) {
      assertThat(staged.fingerprint()).hasSize(64);
      Path dead = Files.createDirectory(store.directory().resolve("build.dead.partial"));
      Files.writeString(dead.resolve("owner"), "999999999 5\n");
      store.sweep();
      assertThat(left()).hasSize(1).doesNotContain(dead);
    }
    assertThat(left()).isEmpty();
  }

  @Test
  @Tag("slow")
  void theSameRecipeGivesTheSameDigestAndCanBeBuiltUpon() throws IOException {
    Files.writeString(recipe.resolve("hello"), "hello\n");
    String yaml =
        """
        files:
          - {src: hello, dest: /var/run/greeting/hello, mode: 0640, owner: root:adm}
          - {src: hello, dest: /opt/hello}
        run: ["echo $A > /opt/a; ! test -e /etc/shadow-none"]
        env: {A: "it's"}
        user: {name: dev, uid: 1234}
        """;
    Built first = build(yaml);
    assertThat(inside(first, "cat /opt/a")).contains("it's");
    assertThat(inside(first, "stat /home/dev")).contains("User:  1234");
    assertThat(left()).containsExactly(store.root(first.digest()).resolveSibling(".").normalize());
    store.remove(first.digest());
    assertThat(left()).isEmpty();
    Built second = build(yaml);
    assertThat(second.digest()).isEqualTo(first.digest());

    Built child =
        build(
            "from: "
                + second.digest()
                + "\npackages: [less]\nrun: [\"less /opt/hello > /opt/again\"]\n");
    assertThat(inside(child, "cat /opt/again")).contains("hello");
    assertThat(inside(child, "stat /home/dev")).contains("User:  1234");
  }

  @Test
  @Tag("slow")
  void aFailingCommandLeavesNothingAndIsShown() throws IOException {
    assertThatThrownBy(() -> build("run: [\"echo about to fail; exit 3\"]"))
        .isInstanceOfSatisfying(
            SpaceException.class,
            e -> {
              assertThat(e.code()).isEqualTo(ErrorCode.TEMPLATE_BUILD_FAILED);
              assertThat(e.problem().cause().orElseThrow()).contains("about to fail");
            });
    assertThat(left()).isEmpty();
  }

  @Test
  @Tag("slow")
  void anInterruptedBuildLeavesNothing() throws Exception {
    AtomicReference<Throwable> thrown = new AtomicReference<>();
    Thread thread =
        Thread.ofVirtual()
            .start(
                () -> {
                  try {
                    build("run: [\"echo sleeping; sleep 300\"]");
                  } catch (IOException | RuntimeException e) {
                    thrown.set(e);
                  }
                });
    await()
        .atMost(Duration.ofMinutes(3))
        .until(() -> log.lines.contains("sleeping") || !thread.isAlive());
    thread.interrupt();
    assertThat(thread.join(Duration.ofSeconds(20))).isTrue();
    assertThat(thrown.get())
        .isInstanceOfSatisfying(
            SpaceException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.CANCELLED));
    assertThat(left()).isEmpty();
    assertThat(Files.readString(Path.of("/proc/mounts"))).doesNotContain(data.toString());
  }
}
