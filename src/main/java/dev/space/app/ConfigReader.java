package dev.space.app;

import dev.space.app.SpaceConfig.Boot;
import dev.space.app.SpaceConfig.E2b;
import dev.space.app.SpaceConfig.E2bTls;
import dev.space.app.SpaceConfig.Firecracker;
import dev.space.app.SpaceConfig.Limits;
import dev.space.app.SpaceConfig.OnStop;
import dev.space.app.SpaceConfig.Qemu;
import dev.space.app.SpaceConfig.Sessions;
import dev.space.app.SpaceConfig.VmmChoice;
import dev.space.app.SpaceConfig.Warm;
import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.error.SpaceException;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.function.Function;
import tools.jackson.core.JacksonException;
import tools.jackson.databind.JsonNode;
import tools.jackson.dataformat.yaml.YAMLMapper;

/// Reads the configuration. Every message names the key and where its value came from.
public final class ConfigReader {

  /// Where a value came from, for messages.
  private record Value(String text, String origin) {}

  private static final String PREFIX = "SPACE_";

  /// Variables of the launcher and the CLI, which are not settings of the service.
  private static final List<String> NOT_SETTINGS =
      List.of("SPACE_API_KEY", "SPACE_URL", "SPACE_CONFIG", "SPACE_HOME");

  private static final List<String> KEYS =
      List.of(
          "data_dir",
          "listen",
          "data_listen",
          "data_url",
          "port_domain",
          "e2b.listen",
          "e2b.domain",
          "e2b.tls_listen",
          "e2b.tls_certificate",
          "e2b.tls_key",
          "vmm",
          "qemu.binary",
          "qemu.accelerator",
          "qemu.uid_base",
          "firecracker.binary",
          "firecracker.jailer",
          "firecracker.uid_base",
          "firecracker.call_seconds",
          "firecracker.disk_ops",
          "firecracker.disk_bytes",
          "boot.kernel",
          "boot.modules",
          "boot.agent",
          "limits.vms_max",
          "limits.memory_mib",
          "limits.memory_overcommit",
          "limits.disk_reserve_mib",
          "sessions.log_bytes_max",
          "sessions.token_seconds",
          "on_stop");

  private final Map<String, Value> values = new TreeMap<>();
  private final List<Warm> warm = new ArrayList<>();
  private final Path home;

  private ConfigReader(Path home) {
    this.home = home;
  }

  /// Reads and validates.
  ///
  /// @param file YAML file; empty means `config.yaml` in the data directory, if it is there
  /// @param environment variables of the process
  /// @param flags dotted keys and their values, from the command line
  /// @param home the project's folder, where the agent is built
  /// @throws SpaceException INVALID_REQUEST naming the key
  public static SpaceConfig read(
      Optional<Path> file, Map<String, String> environment, Map<String, String> flags, Path home) {
    ConfigReader reader = new ConfigReader(home);
    reader.fromEnvironment(environment);
    reader.fromFlags(flags);
    Path dataDir = reader.dataDir(environment);
    Path configFile = file.orElse(dataDir.resolve("config.yaml"));
    if (file.isPresent() || Files.exists(configFile)) {
      Map<String, Value> stronger = Map.copyOf(reader.values);
      reader.fromFile(configFile);
      reader.values.putAll(stronger);
    }
    return reader.build(reader.dataDir(environment));
  }

  private void fromFile(Path file) {
    JsonNode tree;
    try {
      tree = new YAMLMapper().readTree(Files.readString(file));
    } catch (JacksonException e) {
      throw invalid(
          "The configuration file " + file + " is not valid YAML", e.getOriginalMessage());
    } catch (IOException e) {
      throw Problem.of(
              ErrorCode.INVALID_REQUEST, "The configuration file " + file + " can't be read")
          .because(e)
          .remedy("Correct --config or SPACE_CONFIG, or make the file readable.")
          .toException(e);
    }
    if (tree.isMissingNode() || tree.isNull()) {
      return;
    }
    for (Map.Entry<String, JsonNode> entry : tree.properties()) {
      if (entry.getKey().equals("warm")) {
        readWarm(entry.getValue(), file.toString());
      } else if (entry.getValue().isObject()) {
        for (Map.Entry<String, JsonNode> inner : entry.getValue().properties()) {
          put(entry.getKey() + "." + inner.getKey(), inner.getValue().asString(), file.toString());
        }
      } else {
        put(entry.getKey(), entry.getValue().asString(), file.toString());
      }
    }
  }

  private void readWarm(JsonNode node, String origin) {
    if (!node.isObject()) {
      throw invalid("'warm' in " + origin + " must map templates to counts", "for example base: 2");
    }
    for (Map.Entry<String, JsonNode> entry : node.properties()) {
      if (!entry.getValue().isInt() || entry.getValue().intValue() < 0) {
        throw invalid("'warm." + entry.getKey() + "' in " + origin, "it must be a whole number");
      }
      warm.add(new Warm(entry.getKey(), entry.getValue().intValue()));
    }
  }

  private void fromEnvironment(Map<String, String> environment) {
    for (Map.Entry<String, String> entry : environment.entrySet()) {
      String name = entry.getKey();
      if (!name.startsWith(PREFIX) || NOT_SETTINGS.contains(name)) {
        continue;
      }
      String wanted = name.substring(PREFIX.length()).toLowerCase(Locale.ROOT);
      for (String key : KEYS) {
        if (key.replace('.', '_').equals(wanted)) {
          put(key, entry.getValue(), name);
        }
      }
    }
  }

  private void fromFlags(Map<String, String> flags) {
    flags.forEach((key, value) -> put(key, value, "--" + key.replace('.', '-').replace('_', '-')));
  }

  private void put(String key, String value, String origin) {
    if (!KEYS.contains(key)) {
      throw invalid(
          "'" + key + "' in " + origin + " is not a setting",
          "the settings are " + String.join(", ", new TreeSet<>(KEYS)) + " and warm");
    }
    values.put(key, new Value(value, origin));
  }

  private Path dataDir(Map<String, String> environment) {
    Value value = values.get("data_dir");
    return value != null
        ? Path.of(value.text).toAbsolutePath().normalize()
        : DataDirectory.defaultPath(environment);
  }

  private SpaceConfig build(Path dataDir) {
    return new SpaceConfig(
        dataDir,
        address("listen", "127.0.0.1:8700"),
        address("data_listen", "127.0.0.1:8701"),
        text("data_url"),
        text("port_domain"),
        e2b(dataDir),
        choice("vmm", VmmChoice.class, VmmChoice.AUTO),
        new Qemu(
            text("qemu.binary").orElse("qemu-system-x86_64"),
            accelerator(),
            (int) number("qemu.uid_base", 200_000, 1000, 2_000_000_000)),
        new Firecracker(
            text("firecracker.binary").orElse("firecracker"),
            Optional.of(text("firecracker.jailer").orElse("jailer")).filter(j -> !j.equals("none")),
            (int) number("firecracker.uid_base", 200_000, 1000, 2_000_000_000),
            (int) number("firecracker.call_seconds", 10, 1, 3600),
            number("firecracker.disk_ops", 0, 0, 1L << 30),
            number("firecracker.disk_bytes", 0, 0, 1L << 50)),
        new Boot(
            text("boot.kernel").map(Path::of),
            text("boot.modules").map(Path::of),
            text("boot.agent").map(Path::of).orElse(home.resolve("agent/bin/agent"))),
        new Limits(
            (int) number("limits.vms_max", 1000, 1, 100_000),
            number("limits.memory_mib", 0, 0, 1L << 30),
            decimal("limits.memory_overcommit", 2.0, 0.1, 100),
            number("limits.disk_reserve_mib", 1024, 0, 1L << 30)),
        new Sessions(
            number("sessions.log_bytes_max", 16L << 20, 1L << 16, 1L << 40),
            (int) number("sessions.token_seconds", 3600, 10, 30 * 86_400)),
        List.copyOf(warm),
        choice("on_stop", OnStop.class, OnStop.KEEP));
  }

  private E2b e2b(Path dataDir) {
    Optional<String> domain = text("e2b.domain");
    Optional<E2bTls> tls =
        text("e2b.tls_listen").map(_ -> tls(dataDir, domain.map(Certificates::name)));
    return new E2b(optionalAddress("e2b.listen", "127.0.0.1:8702"), domain, tls);
  }

  private E2bTls tls(Path dataDir, Optional<String> domain) {
    Optional<Path> certificate = text("e2b.tls_certificate").map(Path::of);
    Optional<Path> key = text("e2b.tls_key").map(Path::of);
    if (certificate.isPresent() != key.isPresent()) {
      throw bad(
          certificate.isPresent() ? "e2b.tls_certificate" : "e2b.tls_key",
          "e2b.tls_certificate and e2b.tls_key go together");
    }
    if (certificate.isEmpty() && domain.isEmpty()) {
      throw bad("e2b.tls_listen", "it needs e2b.domain, or e2b.tls_certificate and e2b.tls_key");
    }
    return new E2bTls(
        address("e2b.tls_listen", "127.0.0.1:8443"),
        certificate.orElseGet(() -> Certificates.certificate(dataDir, domain.orElseThrow())),
        key.orElseGet(() -> Certificates.key(dataDir, domain.orElseThrow())));
  }

  private String accelerator() {
    String chosen = text("qemu.accelerator").orElse("auto");
    if (!List.of("auto", "kvm", "tcg").contains(chosen)) {
      throw bad("qemu.accelerator", "it must be auto, kvm or tcg");
    }
    return chosen;
  }

  private Optional<String> text(String key) {
    Value value = values.get(key);
    return value == null || value.text.isBlank() ? Optional.empty() : Optional.of(value.text);
  }

  /// Given but empty means nowhere.
  private Optional<InetSocketAddress> optionalAddress(String key, String fallback) {
    Value value = values.get(key);
    return value != null && value.text.isBlank()
        ? Optional.empty()
        : Optional.of(address(key, fallback));
  }

  private InetSocketAddress address(String key, String fallback) {
    String given = text(key).orElse(fallback);
    int colon = given.lastIndexOf(':');
    String host = colon < 0 ? "" : given.substring(0, colon);
    if (host.isEmpty()) {
      throw bad(key, "it must be host:port, such as " + fallback);
    }
    int port =
        parse(key, given.substring(colon + 1), Integer::valueOf, "it must end in a port number");
    if (port < 0 || port > 65_535) {
      throw bad(key, "a port is 0 to 65535");
    }
    return new InetSocketAddress(host.replaceAll("^\\[|]$", ""), port);
  }

  private long number(String key, long fallback, long min, long max) {
    Optional<String> given = text(key);
    if (given.isEmpty()) {
      return fallback;
    }
    long value = parse(key, given.get(), Long::valueOf, "it must be a whole number");
    if (value < min || value > max) {
      throw bad(key, "it must be " + min + " to " + max);
    }
    return value;
  }

  private double decimal(String key, double fallback, double min, double max) {
    Optional<String> given = text(key);
    if (given.isEmpty()) {
      return fallback;
    }
    double value = parse(key, given.get(), Double::valueOf, "it must be a number");
    if (!(value >= min && value <= max)) {
      throw bad(key, "it must be " + min + " to " + max);
    }
    return value;
  }

  private <T> T parse(String key, String text, Function<String, T> parser, String rule) {
    try {
      return parser.apply(text);
    } catch (NumberFormatException e) {
      throw bad(key, rule);
    }
  }

  private <E extends Enum<E>> E choice(String key, Class<E> type, E fallback) {
    Optional<String> given = text(key);
    if (given.isEmpty()) {
      return fallback;
    }
    List<String> allowed = new ArrayList<>();
    for (E constant : type.getEnumConstants()) {
      String name = constant.name().toLowerCase(Locale.ROOT);
      if (name.equals(given.get())) {
        return constant;
      }
      allowed.add(name);
    }
    throw bad(key, "it must be one of " + String.join(", ", allowed));
  }

  private SpaceException bad(String key, String rule) {
    Value value = values.get(key);
    String origin = value == null ? "the defaults" : value.origin;
    return invalid("'" + key + "' from " + origin + " is not valid", rule);
  }

  private static SpaceException invalid(String detail, String cause) {
    return Problem.of(ErrorCode.INVALID_REQUEST, detail)
        .because(cause)
        .remedy("Correct the setting; docs/configuration.md lists them all.")
        .toException();
  }
}
