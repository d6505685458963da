package dev.space.image;

import dev.space.core.node.TemplateImages;
import dev.space.core.template.TemplateBuilder;
import dev.space.host.Command;
import dev.space.host.Processes;
import dev.space.host.Processes.Finished;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import java.util.stream.Stream;

/// What tests that boot real VMs need: kernel, initramfs, the base template's root image, writable
/// disks. Made once, then found again in `<repo>/.space/test`, or in the directory that
/// `SPACE_TEST_DATA` names (several checkouts may share one). The first use takes about a minute
/// and needs root, mmdebstrap and a network; later ones take milliseconds.
///
/// ```java
/// BootFiles boot = TestImages.boot();            // kernel, initramfs with this checkout's agent
/// Path root = TestImages.root();                 // vda, read-only
/// TestImages.disks().makeWritable(vmDir.resolve("disk.img"), 1024); // vdb
/// ```
public final class TestImages {

  private static final Processes PROCESSES = new Processes(System.getenv());

  private TestImages() {}

  /// The data directory they lie in; its layout is that of a real one.
  public static Path data() {
    String given = System.getenv("SPACE_TEST_DATA");
    Path data = given == null ? Path.of(".space/test") : Path.of(given);
    return data.toAbsolutePath().normalize();
  }

  public static BootFiles boot() {
    return setup().boot();
  }

  /// The same with another agent, in a data directory of its own.
  public static BootFiles boot(Path data, Path agent) {
    setup();
    GuestKernel kernel = new KernelStore(data(), PROCESSES).installed().orElseThrow();
    return new BootImages(data).prepare(kernel, agent);
  }

  /// The uncompressed kernel.
  public static Path vmlinux() {
    setup();
    GuestKernel kernel = new KernelStore(data(), PROCESSES).installed().orElseThrow();
    return new BootImages(data()).vmlinux(kernel);
  }

  /// The base template's root image.
  public static Path root() {
    return images().root(digest());
  }

  /// The base template's digest, which [#images] knows.
  public static String digest() {
    return setup().base().digest();
  }

  /// A template built from a recipe of this checkout, in the same data directory. The first time
  /// takes minutes and needs root, mmdebstrap and a network.
  public static synchronized TemplateBuilder.Built template(Path recipe) throws IOException {
    TemplateStore store = new TemplateStore(data(), PROCESSES);
    Path record = data().resolve("built-" + recipe.getFileName());
    if (Files.exists(record)) {
      String[] words = Files.readString(record).strip().split(" ");
      Optional<TemplateBuilder.Built> built = store.built(words[1]);
      if (words[0].equals(ImageBuilder.fingerprint(recipe)) && built.isPresent()) {
        return built.get();
      }
    }
    ImageBuilder builder = new ImageBuilder(store, data(), PROCESSES, Optional.empty());
    try (TemplateBuilder.Staged staged = builder.stage(recipe)) {
      TemplateBuilder.Built built =
          staged.build(
              ref -> {
                throw new IllegalStateException(recipe + " is built upon " + ref);
              },
              log());
      Files.writeString(record, staged.fingerprint() + " " + built.digest() + "\n");
      return built;
    }
  }

  private static synchronized Setup.Ready setup() {
    if (ready.isEmpty()) {
      TemplateStore store = new TemplateStore(data(), PROCESSES);
      ImageBuilder builder = new ImageBuilder(store, data(), PROCESSES, Optional.empty());
      Setup.Parts parts =
          new Setup.Parts(data(), Optional.empty(), agent(), Path.of("templates/base"));
      ready = Optional.of(new Setup(parts, PROCESSES, store, builder).run(log()));
    }
    return ready.get();
  }

  private static Optional<Setup.Ready> ready = Optional.empty();

  public static TemplateImages images() {
    return new TemplateStore(data(), PROCESSES);
  }

  public static DiskImages disks() {
    return new DiskImages(data(), PROCESSES);
  }

  /// This checkout's agent, built when it is older than its sources.
  public static synchronized Path agent() {
    Path agent = Path.of("agent/bin/agent").toAbsolutePath();
    try {
      if (!Files.exists(agent) || newestSource().compareTo(Files.getLastModifiedTime(agent)) > 0) {
        report("building the guest agent");
        build();
      }
      return agent;
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private static void build() {
    Map<String, String> env = new HashMap<>(Map.of("CGO_ENABLED", "0"));
    System.getenv()
        .forEach(
            (name, value) -> {
              if (name.startsWith("GO") || name.startsWith("SSL_")) {
                env.put(name, value);
              }
            });
    Finished built =
        new Processes(withGo())
            .run(
                Command.of(
                        Duration.ofMinutes(5),
                        "go",
                        "build",
                        "-trimpath",
                        "-ldflags=-s -w",
                        "-o",
                        "bin/agent",
                        ".")
                    .in(Path.of("agent").toAbsolutePath())
                    .env(env));
    if (!built.ok()) {
      throw new IllegalStateException("the agent doesn't build: " + built.said());
    }
  }

  /// An environment in which `go` is found.
  public static Map<String, String> withGo() {
    Map<String, String> env = new HashMap<>(System.getenv());
    env.merge("PATH", "/usr/local/go/bin", (path, go) -> path + ":" + go);
    return env;
  }

  private static FileTime newestSource() throws IOException {
    try (Stream<Path> tree = Files.walk(Path.of("agent"))) {
      FileTime newest = FileTime.fromMillis(0);
      for (Path path :
          tree.filter(p -> p.toString().endsWith(".go") || p.endsWith("go.mod")).toList()) {
        FileTime time = Files.getLastModifiedTime(path);
        newest = time.compareTo(newest) > 0 ? time : newest;
      }
      return newest;
    }
  }

  private static void report(String step) {
    System.err.println("test images: " + step);
  }

  private static TemplateBuilder.BuildLog log() {
    return new TemplateBuilder.BuildLog() {
      @Override
      public void step(String text) {
        report(text);
      }

      @Override
      public void line(String text) {
        // Only steps are of interest here; a failure carries the last lines.
      }
    };
  }
}
