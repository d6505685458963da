package dev.space.core.sandbox;

import static java.nio.charset.StandardCharsets.UTF_8;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.error.SpaceException;
import dev.space.core.template.Resources;
import java.time.Duration;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.regex.Pattern;

/// The limits of what callers may ask for. Every refusal names the field and the limit.
final class SandboxLimits {

  static final int VCPUS_MAX = 32;
  static final int MEMORY_MIB_MIN = 128;
  static final int MEMORY_MIB_MAX = 1 << 20;
  static final int DISK_MIB_MIN = 64;
  static final int DISK_MIB_MAX = 1 << 20;
  static final int ENV_BYTES_MAX = 64 << 10;
  static final int METADATA_PAIRS_MAX = 64;
  static final int METADATA_BYTES_MAX = 16 << 10;
  static final Duration TIMEOUT_MIN = Duration.ofSeconds(1);
  static final Duration TIMEOUT_MAX = Duration.ofDays(30);
  static final int COPIES_MAX = 100;
  static final int NAME_MAX = 128;
  static final int PUBLIC_PORTS_MAX = 64;
  static final int PORT_MAX = 65_535;

  private static final Pattern ENV_NAME = Pattern.compile("[A-Za-z_][A-Za-z0-9_]{0,255}");

  private SandboxLimits() {}

  static void check(CreateSandbox request) {
    request.vcpus().ifPresent(n -> number("vcpus", n, 1, VCPUS_MAX));
    request.memoryMib().ifPresent(n -> number("memory_mib", n, MEMORY_MIB_MIN, MEMORY_MIB_MAX));
    request.diskMib().ifPresent(n -> number("disk_mib", n, DISK_MIB_MIN, DISK_MIB_MAX));
    env(request.env());
    metadata(request.metadata());
    request.timeout().ifPresent(d -> time("timeout", d));
    request.idleTimeout().ifPresent(d -> time("idle_timeout", d));
    ports(request.publicPorts());
  }

  static void check(UpdateSandbox change) {
    change.metadata().ifPresent(SandboxLimits::metadata);
    change.timeout().filter(d -> !d.isZero()).ifPresent(d -> time("timeout", d));
    change.idleTimeout().filter(d -> !d.isZero()).ifPresent(d -> time("idle_timeout", d));
    change.publicPorts().ifPresent(SandboxLimits::ports);
  }

  private static void ports(Set<Integer> ports) {
    if (ports.size() > PUBLIC_PORTS_MAX) {
      throw refuse(
          "public_ports must have at most %d ports, not %d"
              .formatted(PUBLIC_PORTS_MAX, ports.size()));
    }
    ports.forEach(port -> number("public_ports", port, 1, PORT_MAX));
  }

  static void copies(int count) {
    number("count", count, 1, COPIES_MAX);
  }

  static void snapshotName(Optional<String> name) {
    name.ifPresent(
        n -> {
          if (n.isBlank() || n.length() > NAME_MAX || n.chars().anyMatch(Character::isISOControl)) {
            throw refuse("name must have 1 to " + NAME_MAX + " printable characters");
          }
        });
  }

  /// Checks that what was asked for is what a snapshot has, whose shape can't change.
  static void sameShape(CreateSandbox request, Resources of) {
    same("vcpus", request.vcpus(), of.vcpus());
    same("memory_mib", request.memoryMib(), of.memoryMib());
    same("disk_mib", request.diskMib(), of.diskMib());
  }

  private static void same(String field, Optional<Integer> asked, int is) {
    if (asked.isPresent() && asked.get() != is) {
      throw Problem.of(
              ErrorCode.INVALID_REQUEST,
              "%s must be %d as in the snapshot, not %d".formatted(field, is, asked.get()))
          .remedy("Leave it out: a sandbox has the resources of the snapshot it comes from.")
          .toException();
    }
  }

  private static void number(String field, int value, int min, int max) {
    if (value < min || value > max) {
      throw refuse("%s must be %d to %d, not %d".formatted(field, min, max, value));
    }
  }

  private static void time(String field, Duration value) {
    if (value.compareTo(TIMEOUT_MIN) < 0 || value.compareTo(TIMEOUT_MAX) > 0) {
      throw refuse(
          "%s must be %d to %d seconds, not %s"
              .formatted(
                  field,
                  TIMEOUT_MIN.toSeconds(),
                  TIMEOUT_MAX.toSeconds(),
                  value.toMillis() % 1000 == 0
                      ? String.valueOf(value.toSeconds())
                      : value.toMillis() / 1000.0));
    }
  }

  private static void env(Map<String, String> env) {
    long bytes = 0;
    for (Map.Entry<String, String> entry : env.entrySet()) {
      if (!ENV_NAME.matcher(entry.getKey()).matches()) {
        throw refuse(
            "env has a name that is none: letters, digits and _, at most 256, no digit first");
      }
      if (entry.getValue().indexOf('\0') >= 0) {
        throw refuse("env." + entry.getKey() + " must not contain a NUL character");
      }
      bytes += size(entry) + 2; // as in environ: name=value and a NUL
    }
    if (bytes > ENV_BYTES_MAX) {
      throw refuse("env must have at most %d bytes, not %d".formatted(ENV_BYTES_MAX, bytes));
    }
  }

  private static void metadata(Map<String, String> metadata) {
    if (metadata.size() > METADATA_PAIRS_MAX) {
      throw refuse(
          "metadata must have at most %d pairs, not %d"
              .formatted(METADATA_PAIRS_MAX, metadata.size()));
    }
    long bytes = 0;
    for (Map.Entry<String, String> entry : metadata.entrySet()) {
      if (entry.getKey().isEmpty()) {
        throw refuse("metadata must not have an empty name");
      }
      bytes += size(entry);
    }
    if (bytes > METADATA_BYTES_MAX) {
      throw refuse(
          "metadata must have at most %d bytes, not %d".formatted(METADATA_BYTES_MAX, bytes));
    }
  }

  private static long size(Map.Entry<String, String> entry) {
    return (long) entry.getKey().getBytes(UTF_8).length + entry.getValue().getBytes(UTF_8).length;
  }

  private static SpaceException refuse(String detail) {
    return Problem.of(ErrorCode.INVALID_REQUEST, detail).toException();
  }
}
