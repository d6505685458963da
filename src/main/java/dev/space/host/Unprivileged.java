package dev.space.host;

import dev.space.core.error.SpaceException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;

/// What a user other than root needs beyond tools: templates' root file systems have files of many
/// owners, and are made in a user namespace onto which a range of ids is mapped (subuid(5)).
final class Unprivileged {

  private static final long IDS_MIN = 65_536;

  /// Where Debian's useradd begins to hand out ranges.
  private static final long FIRST_ID = 100_000;

  private static final Duration TRY_MAX = Duration.ofSeconds(20);

  private final Processes processes;
  private final Path root;
  private final String user;

  Unprivileged(Processes processes, Path root, String user) {
    this.processes = processes;
    this.root = root;
    this.user = user;
  }

  /// One line of `/etc/subuid`.
  private record Range(String owner, long first, long count) {}

  Prerequisite subordinateIds() {
    String name = "subordinate ids";
    List<Range> users = ranges("etc/subuid");
    List<Range> groups = ranges("etc/subgid");
    if (users.stream().anyMatch(this::suffices) && groups.stream().anyMatch(this::suffices)) {
      return Prerequisite.ok(name, "/etc/subuid and /etc/subgid have some for " + user);
    }
    long first = Math.max(afterLast(users), afterLast(groups));
    String range = first + "-" + (first + IDS_MIN - 1);
    return Prerequisite.missing(
        name,
        "no " + IDS_MIN + " for " + user + " in /etc/subuid and /etc/subgid",
        "Run as root: usermod --add-subuids " + range + " --add-subgids " + range + " " + user);
  }

  private boolean suffices(Range range) {
    return range.owner().equals(user) && range.count() >= IDS_MIN;
  }

  private static long afterLast(List<Range> ranges) {
    return ranges.stream().mapToLong(r -> r.first() + r.count()).reduce(FIRST_ID, Math::max);
  }

  private List<Range> ranges(String file) {
    try {
      return Files.readAllLines(root.resolve(file)).stream()
          .map(line -> line.strip().split(":"))
          .filter(words -> words.length == 3)
          .filter(words -> (words[1] + words[2]).chars().allMatch(Character::isDigit))
          .map(words -> new Range(words[0], Long.parseLong(words[1]), Long.parseLong(words[2])))
          .toList();
    } catch (IOException | NumberFormatException _) {
      return List.of();
    }
  }

  Prerequisite userNamespaces() {
    String name = "user namespaces";
    try {
      var tried =
          processes.run(Command.of(TRY_MAX, "unshare", "--user", "--map-root-user", "true"));
      return tried.ok()
          ? Prerequisite.ok(name, "this user may make them")
          : Prerequisite.missing(name, "this user may not make them: " + tried.said(), allow());
    } catch (SpaceException e) {
      return Prerequisite.missingPackage(name, e.problem().oneLine(), "util-linux");
    }
  }

  private String allow() {
    if (setting("kernel/unprivileged_userns_clone").equals("0")) {
      return "Run as root: sysctl -w kernel.unprivileged_userns_clone=1";
    }
    if (setting("kernel/apparmor_restrict_unprivileged_userns").equals("1")) {
      return "Run as root: sysctl -w kernel.apparmor_restrict_unprivileged_userns=0";
    }
    if (setting("user/max_user_namespaces").equals("0")) {
      return "Run as root: sysctl -w user.max_user_namespaces=10000";
    }
    return "Run SPACE as root: a chroot has none for other users, a container what its host allows.";
  }

  private String setting(String name) {
    try {
      return Files.readString(root.resolve("proc/sys").resolve(name)).strip();
    } catch (IOException _) {
      return "";
    }
  }
}
