package dev.space.vmm.firecracker;

import dev.space.core.vm.VmIdentity;
import dev.space.host.ProcessIdentity;
import java.io.IOException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.attribute.BasicFileAttributes;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/// Finds the Firecracker processes of the VM directories below a root again.
///
/// One without a jail has the path of its socket among its arguments; so has a jailer that has not
/// become a Firecracker yet, as the base of its jail. One in a jail is told by its root directory,
/// which is the very one that lies in its VM's directory.
final class Traces {

  private static final String SOCKET = "--api-sock";
  private static final String JAIL_BASE = "--chroot-base-dir";

  private final Path root;

  Traces(Path root) {
    this.root = root.toAbsolutePath().normalize();
  }

  /// A jail of one VM.
  ///
  /// @param directory the VM's
  /// @param executable and `id`: the two names that the jailer makes the jail's path of
  private record Jail(Path directory, String executable, String id) {}

  Map<Path, VmIdentity> running() {
    Map<Path, VmIdentity> found = new HashMap<>();
    Optional<Map<Object, Jail>> jails = Optional.empty();
    for (ProcessIdentity process : ProcessIdentity.all()) {
      List<String> arguments = process.arguments();
      if (!arguments.contains(SOCKET)) {
        continue;
      }
      Optional<Path> directory = named(arguments);
      if (directory.isEmpty()) {
        Map<Object, Jail> all = jails.orElseGet(this::jails);
        jails = Optional.of(all);
        directory =
            key(Path.of("/proc", Long.toString(process.pid()), "root"))
                .flatMap(key -> Optional.ofNullable(all.get(key)))
                .map(Jail::directory);
      }
      directory
          .filter(one -> root.equals(one.getParent()))
          .ifPresent(one -> found.put(one, new VmIdentity(process.pid(), process.startTicks())));
    }
    return Map.copyOf(found);
  }

  /// The ground of a process, if it is that of this VM's directory.
  static Optional<Ground> ground(ProcessIdentity process, Path directory) {
    List<String> arguments = process.arguments();
    if (!arguments.contains(SOCKET)) {
      return Optional.empty();
    }
    if (named(arguments).filter(directory::equals).isPresent() && !arguments.contains(JAIL_BASE)) {
      return Optional.of(Ground.open(directory));
    }
    Optional<Integer> user = process.user();
    Optional<Jail> jail =
        key(Path.of("/proc", Long.toString(process.pid()), "root"))
            .flatMap(key -> Optional.ofNullable(jails(directory).get(key)));
    return jail.flatMap(
        one -> user.map(id -> Ground.jailed(directory, one.executable(), one.id(), id)));
  }

  /// The VM directory that arguments name.
  private static Optional<Path> named(List<String> arguments) {
    Optional<Path> base = after(arguments, JAIL_BASE);
    Optional<Path> home = base.isPresent() ? base : after(arguments, SOCKET).map(Path::getParent);
    return home.filter(one -> one.endsWith(Ground.NAME)).map(Path::getParent);
  }

  private static Optional<Path> after(List<String> arguments, String option) {
    int at = arguments.indexOf(option);
    return at < 0 || at + 1 >= arguments.size()
        ? Optional.empty()
        : Optional.of(Path.of(arguments.get(at + 1)).normalize());
  }

  private Map<Object, Jail> jails() {
    Map<Object, Jail> all = new HashMap<>();
    for (Path directory : children(root)) {
      all.putAll(jails(directory));
    }
    return all;
  }

  /// The jails of one VM, by what tells their root directories from all others.
  private static Map<Object, Jail> jails(Path directory) {
    Map<Object, Jail> all = new HashMap<>();
    for (Path executable : children(directory.resolve(Ground.NAME))) {
      for (Path id : children(executable)) {
        key(id.resolve("root"))
            .ifPresent(
                key ->
                    all.put(
                        key,
                        new Jail(
                            directory,
                            String.valueOf(executable.getFileName()),
                            String.valueOf(id.getFileName()))));
      }
    }
    return all;
  }

  private static Optional<Object> key(Path directory) {
    try {
      return Optional.ofNullable(
          Files.readAttributes(directory, BasicFileAttributes.class).fileKey());
    } catch (IOException _) {
      return Optional.empty();
    }
  }

  private static List<Path> children(Path directory) {
    if (!Files.isDirectory(directory, LinkOption.NOFOLLOW_LINKS)) {
      return List.of();
    }
    try (DirectoryStream<Path> all =
        Files.newDirectoryStream(
            directory, one -> Files.isDirectory(one, LinkOption.NOFOLLOW_LINKS))) {
      List<Path> out = new java.util.ArrayList<>();
      all.forEach(out::add);
      return out;
    } catch (IOException _) {
      return List.of();
    }
  }
}
