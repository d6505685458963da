package dev.space.image;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.error.SpaceException;
import dev.space.core.template.TemplateBuilder.BuildLog;
import dev.space.core.template.TemplateBuilder.Built;
import dev.space.host.Command;
import dev.space.host.DiskFull;
import dev.space.host.Processes;
import dev.space.host.Processes.Finished;
import dev.space.host.SparseFile;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;

/// One build: mmdebstrap makes the root file system as a tar archive in a mount namespace of its
/// own (so that a killed build leaves no mount behind), the archive is hashed and kept compressed,
/// and mke2fs makes the image out of it.
final class ImageBuild {

  private static final Duration BUILD_MAX = Duration.ofHours(1);
  private static final Duration UNPACK_MAX = Duration.ofMinutes(10);
  private static final List<String> EXCLUDED =
      List.of(
          "path-exclude=/usr/share/man/*",
          "path-exclude=/usr/share/info/*",
          "path-exclude=/usr/share/locale/*",
          "path-exclude=/usr/share/doc/*",
          "path-include=/usr/share/doc/*/copyright");

  private final Recipe recipe;
  private final String fingerprint;
  private final Path work;
  private final TemplateStore store;
  private final Path cache;
  private final Processes processes;
  private final Optional<String> mirror;
  private final BuildLog log;

  ImageBuild(
      Recipe recipe,
      String fingerprint,
      Path work,
      TemplateStore store,
      Path cache,
      Processes processes,
      Optional<String> mirror,
      BuildLog log) {
    this.recipe = recipe;
    this.fingerprint = fingerprint;
    this.work = work;
    this.store = store;
    this.cache = cache;
    this.processes = processes;
    this.mirror = mirror;
    this.log = log;
  }

  /// @param parent the archive of the template that this one is built upon
  Built run(Optional<Path> parent) throws IOException {
    Files.createDirectories(cache);
    Path temporary = Files.createDirectories(work.resolve("tmp"));
    Path tar = work.resolve("root.tar");
    List<Path> hooks =
        new BuildHooks(recipe, work.resolve("recipe"), work.resolve("hooks")).write(parent);
    List<String> argv = parent.isPresent() ? upon(parent.get(), hooks, tar) : fresh(hooks, tar);
    Finished made =
        processes.run(
            Command.of(BUILD_MAX, OwnerNamespace.in(argv))
                .env(
                    Map.of(
                        "TMPDIR",
                        temporary.toString(),
                        "SOURCE_DATE_EPOCH",
                        String.valueOf(BuildHooks.EPOCH_SECONDS)))
                .onStart(tool -> TemplateStore.record(work.resolve("tool"), tool)),
            this::said);
    if (!made.ok()) {
      throw buildFailed(made);
    }
    return image(tar);
  }

  private Built image(Path tar) throws IOException {
    Path ready = Files.createDirectories(work.resolve("ready"));
    log.step("packing the root file system");
    RootTar.Content content = RootTar.compress(tar, ready.resolve("root.tar.zst"));
    MessageDigest all = Digests.sha256();
    Digests.add(all, fingerprint);
    Digests.add(all, content.sha256());
    String digest = "sha256:" + Digests.hex(all);
    Optional<Built> same = store.built(digest);
    if (same.isPresent()) {
      log.step("the same template is there already: " + digest);
      return same.get();
    }
    log.step("making the root image");
    Path tree = Files.createDirectories(work.resolve("tree"));
    Finished unpacked =
        processes.run(
            Command.of(
                    UNPACK_MAX,
                    OwnerNamespace.in(
                        List.of(
                            "tar",
                            "-C",
                            tree.toString(),
                            "--numeric-owner",
                            "--xattrs",
                            "--xattrs-include=*",
                            "--exclude=./dev/*",
                            "-xpf",
                            tar.toString())))
                .onStart(tool -> TemplateStore.record(work.resolve("tool"), tool)),
            log::line);
    if (!unpacked.ok()) {
      throw new IOException("tar: " + unpacked.said());
    }
    Path image = ready.resolve("root.img");
    new Ext4(processes, OwnerNamespace.in(List.of())).readOnly(image, tree, content, log::line);
    StagedFile.sync(image);
    StagedFile.sync(ready.resolve("root.tar.zst"));
    long bytes = SparseFile.occupied(image);
    store.write(
        ready,
        new TemplateStore.Manifest(
            digest,
            recipe.defaults(),
            bytes,
            content.sha256(),
            Files.readString(work.resolve("recipe").resolve(ImageBuilder.RECIPE))));
    store.place(ready, digest);
    log.step("built " + digest);
    return new Built(digest, recipe.defaults(), bytes);
  }

  private List<String> fresh(List<Path> hooks, Path tar) {
    List<String> argv = common("minbase", hooks);
    if (!packages().isEmpty()) {
      argv.add("--include=" + String.join(",", packages()));
    }
    for (String option : EXCLUDED) {
      argv.add("--dpkgopt=" + option);
    }
    argv.add("--skip=essential/unlink");
    argv.add(release());
    argv.add(tar.toString());
    mirror.ifPresent(argv::add);
    return argv;
  }

  private List<String> upon(Path parent, List<Path> hooks, Path tar) throws IOException {
    log.step("unpacking the parent template");
    Path base = work.resolve("parent.tar");
    RootTar.decompress(parent, base);
    List<String> argv = common("custom", hooks);
    argv.add("--skip=setup,update,download,extract,cleanup/mmdebstrap");
    // The parent's device nodes go: mmdebstrap makes its own and fails when they are there.
    argv.addAll(
        argv.indexOf("--dpkgopt=force-unsafe-io") + 1,
        List.of(
            "--setup-hook=tar-in " + base + " /",
            "--setup-hook=find \"$1\"/dev -xdev -mindepth 1 -delete"));
    argv.add("");
    argv.add(tar.toString());
    return argv;
  }

  private List<String> common(String variant, List<Path> hooks) {
    List<String> argv =
        new ArrayList<>(
            List.of(
                "mmdebstrap",
                "--mode=unshare",
                "--variant=" + variant,
                "--format=tar",
                "--aptopt=APT::Install-Recommends \"false\"",
                "--aptopt=Acquire::Languages \"none\"",
                "--dpkgopt=force-unsafe-io"));
    argv.add("--setup-hook=mkdir -p \"$1\"/var/cache/apt/archives");
    argv.add("--setup-hook=sync-in " + cache + " /var/cache/apt/archives");
    argv.add("--customize-hook=sync-out /var/cache/apt/archives " + cache);
    for (Path hook : hooks) {
      argv.add("--customize-hook=" + hook);
    }
    return argv;
  }

  private Set<String> packages() {
    Set<String> packages = new LinkedHashSet<>(recipe.packages());
    recipe.user().filter(Recipe.User::sudo).ifPresent(_ -> packages.add("sudo"));
    return packages;
  }

  private String release() {
    return switch (recipe.from()) {
      case Recipe.Base.Release(Optional<String> codename) ->
          codename.orElseGet(DebianRelease::ofHost);
      case Recipe.Base.Parent _ -> throw new IllegalStateException("a parent has no release");
    };
  }

  private void said(String line) {
    if (line.startsWith("I: ")) {
      log.step(line.substring(3));
    } else {
      log.line(line);
    }
  }

  private static SpaceException buildFailed(Finished made) {
    String said = made.said();
    if (DiskFull.isSaidIn(said)) {
      return Problem.of(ErrorCode.DISK_FULL, "the disk is full: the template was not built")
          .because(lastError(made))
          .remedy("Free space in the data directory, then build again.")
          .toException();
    }
    return Problem.of(ErrorCode.TEMPLATE_BUILD_FAILED, "the template could not be built")
        .because(lastError(made))
        .remedy("Read every line of every command: 'space ops log ID'; 'space ops ls' has the id.")
        .toException();
  }

  private static String lastError(Finished made) {
    List<String> tail = made.tail();
    return String.join("\n", tail.subList(Math.max(0, tail.size() - 12), tail.size()));
  }
}
