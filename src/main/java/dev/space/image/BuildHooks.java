package dev.space.image;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.image.Recipe.AddedFile;
import dev.space.image.Recipe.User;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;

/// Writes the scripts that mmdebstrap runs while it makes the root file system. Each gets the root
/// as `$1`. Files are written by tools inside the root, never from outside: a link in the root such
/// as `/var/run` would otherwise lead to the host's.
final class BuildHooks {

  /// Every time in an image is this or older, so that the same packages give the same image.
  static final long EPOCH_SECONDS = 1_767_225_600L;

  private static final String PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

  private final Recipe recipe;
  private final Path recipeDirectory;
  private final Path directory;
  private final List<Path> scripts = new ArrayList<>();

  BuildHooks(Recipe recipe, Path recipeDirectory, Path directory) {
    this.recipe = recipe;
    this.recipeDirectory = recipeDirectory;
    this.directory = directory;
  }

  /// The scripts in the order in which they are to run.
  ///
  /// @param parent when the image is built upon another, its packages are installed by a script;
  ///   otherwise mmdebstrap has done that
  List<Path> write(Optional<Path> parent) throws IOException {
    Files.createDirectories(directory);
    if (parent.isPresent()) {
      script("resolver", "cat /etc/resolv.conf > \"$root/etc/resolv.conf\"\n");
      if (!recipe.packages().isEmpty()) {
        script("packages", INSTALL.formatted(String.join(" ", recipe.packages())));
      }
    }
    if (recipe.user().isPresent()) {
      script("user", user(recipe.user().get()));
    }
    for (AddedFile file : recipe.files()) {
      script("file", file(file));
    }
    for (String command : recipe.run()) {
      script("run", run(command));
    }
    script("finish", FINISH.formatted(EPOCH_SECONDS));
    return List.copyOf(scripts);
  }

  private static final String INSTALL =
      """
      apt() {
        chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 \\
          DEBIAN_FRONTEND=noninteractive apt-get -q -y "$@"
      }
      apt update
      apt -o Dpkg::Options::=--force-unsafe-io install --no-install-recommends %s
      """;

  private void script(String kind, String body) throws IOException {
    Path path = directory.resolve(String.format(Locale.ROOT, "%03d-%s", scripts.size() + 1, kind));
    Files.writeString(path, "#!/bin/sh\nset -eu\nroot=\"$1\"\n" + body);
    Files.setPosixFilePermissions(path, PosixFilePermissions.fromString("rwxr-xr-x"));
    scripts.add(path);
  }

  private static String user(User user) {
    if (user.name().equals("root")) {
      return "";
    }
    String make =
        """
        if uid=$(chroot "$root" id -u %1$s 2>/dev/null); then
          [ "$uid" = %2$d ] || { echo "user.uid: %1$s is there already with uid $uid" >&2; exit 1; }
        else
          shell=/bin/sh
          [ ! -x "$root/bin/bash" ] || shell=/bin/bash
          chroot "$root" useradd --uid %2$d --user-group --create-home --home-dir %3$s --shell $shell %1$s
        fi
        """
            .formatted(user.name(), user.uid(), quote(user.home()));
    String sudo =
        """
        chroot "$root" test -d /etc/sudoers.d || { echo "user.sudo: the package sudo is missing" >&2; exit 1; }
        chroot "$root" sh -c 'umask 0337; printf "%%s ALL=(ALL) NOPASSWD: ALL\\n" "$1" > "/etc/sudoers.d/90-$1"' sh %s
        """
            .formatted(user.name());
    return user.sudo() ? make + sudo : make;
  }

  private String file(AddedFile file) throws IOException {
    Path source = recipeDirectory.resolve(file.src());
    if (!Files.exists(source) || !source.toRealPath().startsWith(recipeDirectory.toRealPath())) {
      throw Problem.of(
              ErrorCode.RECIPE_INVALID,
              "template.yaml: 'files' names " + file.src() + ", which the recipe directory lacks")
          .toException();
    }
    String dest = quote(file.dest());
    if (Files.isDirectory(source)) {
      String mode =
          file.mode()
              .map(
                  m ->
                      String.format(
                          Locale.ROOT, "find %s -type f -exec chmod %04o {} +\n", dest, m))
              .orElse("");
      return """
          chroot "$root" mkdir -p -- %1$s
          tar -C %2$s --sort=name -cf - . | chroot "$root" tar -C %1$s --no-same-owner -xpf -
          chroot "$root" chown -hR -- %3$s %1$s
          """
              .formatted(dest, quote(source.toString()), file.owner())
          + (mode.isEmpty() ? "" : "chroot \"$root\" " + mode);
    }
    String mode =
        String.format(
            Locale.ROOT, "%04o", file.mode().orElse(Files.isExecutable(source) ? 0755 : 0644));
    return """
        chroot "$root" sh -c 'mkdir -p -- "$(dirname -- "$1")" && cat > "$1"' sh %1$s < %2$s
        chroot "$root" chmod -- %3$s %1$s
        chroot "$root" chown -- %4$s %1$s
        """
        .formatted(dest, quote(source.toString()), mode, file.owner());
  }

  private String run(String command) {
    StringBuilder env = new StringBuilder("HOME=/root DEBIAN_FRONTEND=noninteractive");
    Map<String, String> given = new TreeMap<>(recipe.env());
    given.putIfAbsent("PATH", PATH);
    given.putIfAbsent("LC_ALL", "C.UTF-8");
    given.forEach((name, value) -> env.append(' ').append(name).append('=').append(quote(value)));
    return "exec chroot \"$root\" env -i " + env + " sh -ec " + quote(command) + "\n";
  }

  /// What every image gets at last: names that resolve without a network, no traces of the host and
  /// of the build, times no newer than [#EPOCH_SECONDS], and Python's libraries compiled, which
  /// makes a first `python3` quick. What is mounted at `/proc`, `/sys` and `/dev` is not the
  /// image's, and only root may set its times. Python is compiled after the times are set, because
  /// a compiled file holds its source's time.
  private static final String FINISH =
      """
      printf '127.0.0.1 localhost\\n::1 localhost ip6-localhost ip6-loopback\\n' > "$root/etc/hosts.new"
      mv "$root/etc/hosts.new" "$root/etc/hosts"
      rm -f "$root/etc/resolv.conf" "$root/etc/hostname"
      : > "$root/etc/resolv.conf"
      echo sandbox > "$root/etc/hostname"
      rm -f "$root"/etc/*- "$root"/var/cache/debconf/*-old "$root"/var/lib/dpkg/*-old
      rm -rf "$root"/var/cache/man/* "$root"/var/cache/ldconfig/*
      find "$root/var/log" -type f -exec truncate -s 0 {} +
      find "$root" -xdev \\( -path "$root/proc" -o -path "$root/sys" -o -path "$root/dev" \\) -prune \\
        -o -newermt @%1$d -exec touch -h -d @%1$d {} +
      for python in "$root"/usr/bin/python3.[0-9]*; do
        [ -x "$python" ] || continue
        version="${python##*/}"
        case "$version" in *[!a-z0-9.]*) continue ;; esac
        for library in "/usr/lib/$version" /usr/lib/python3/dist-packages "/usr/local/lib/$version"; do
          [ -d "$root$library" ] || continue
          chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin "$version" -E -m compileall -q -f \\
            --invalidation-mode timestamp "$library" || echo "some files of $library don't compile"
        done
      done
      """;

  /// A text as one word of the shell.
  static String quote(String text) {
    return "'" + text.replace("'", "'\\''") + "'";
  }
}
