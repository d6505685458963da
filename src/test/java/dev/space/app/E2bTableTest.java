package dev.space.app;

import static org.assertj.core.api.Assertions.assertThat;

import dev.space.core.session.SessionHost;
import dev.space.dataplane.DataPlane;
import dev.space.dataplane.PortTokens;
import dev.space.e2b.E2b;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.SecureRandom;
import java.time.InstantSource;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// `docs/e2b-compatibility.md` tells of every call that is answered and of no other.
class E2bTableTest {

  private static final Pattern ROW =
      Pattern.compile(
          "(?m)^\\| `((?:GET|HEAD|POST|PUT|PATCH|DELETE) /[^`]*)` \\| (yes|differs|no) \\|");

  @TempDir Path dir;

  @Test
  void theTableAndTheRoutesAreTheSame() throws IOException {
    Set<String> told = new TreeSet<>();
    Matcher row = ROW.matcher(Files.readString(Path.of("docs/e2b-compatibility.md")));
    while (row.find()) {
      told.add(row.group(1));
    }
    assertThat(told).isEqualTo(routes());
  }

  private Set<String> routes() {
    SpaceConfig config =
        ConfigReader.read(
            Optional.empty(),
            Map.of(),
            Map.of("data_dir", dir.toString(), "vmm", "simulated"),
            Path.of("").toAbsolutePath());
    InstantSource clock = InstantSource.system();
    var random = new SecureRandom();
    try (var services =
        new Services(config, SimulatedMachine.driver(clock, random), clock, random)) {
      SessionHost host = services;
      var data =
          new DataPlane(
              services.sessions(),
              host,
              services.keys(),
              new PortTokens(services.tokens(), clock),
              Optional.empty(),
              clock);
      E2b e2b = Daemon.e2b(config, services, data, clock, random);
      return new TreeSet<>(e2b.routes());
    }
  }
}
