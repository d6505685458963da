package dev.space.dataplane;

import static org.assertj.core.api.Assertions.assertThat;

import dev.space.api.ContractCheck;
import dev.space.core.Ids;
import dev.space.core.access.ApiKeys;
import dev.space.core.session.AttachmentToken;
import dev.space.core.session.FakeHost;
import dev.space.core.session.SessionService;
import dev.space.http.Route;
import dev.space.node.log.DiskOutputLogs;
import dev.space.node.log.LogBounds;
import dev.space.store.SqliteStore;
import java.nio.file.Path;
import java.security.SecureRandom;
import java.time.Duration;
import java.time.InstantSource;
import java.util.Optional;
import java.util.TreeSet;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class DataPlaneContractTest {

  @TempDir private Path root;

  @Test
  void routesAreThoseOfTheContract() {
    var random = new SecureRandom();
    InstantSource clock = InstantSource.system();
    var tokens = new AttachmentToken(new byte[AttachmentToken.KEY_BYTES]);
    var host = new FakeHost();
    try (var store = SqliteStore.open(root.resolve("data"));
        var sessions =
            new SessionService(
                host,
                store,
                new DiskOutputLogs(root.resolve("sessions"), LogBounds.DEFAULT),
                tokens,
                clock,
                new Ids(random),
                Duration.ofHours(1))) {
      var plane =
          new DataPlane(
              sessions,
              host,
              new ApiKeys(store, new Ids(random), random, clock),
              new PortTokens(tokens, clock),
              Optional.empty(),
              clock);
      var routed = new TreeSet<String>();
      for (Route route : plane.routes().routes()) {
        String template = route.template().replace("{path...}", "{path}");
        // A port takes any method; the contract shows it by one.
        String method = route.method().equals("*") ? "GET" : route.method();
        routed.add(method + " " + template);
      }
      var known = new TreeSet<>(new ContractCheck().dataPlane());
      assertThat(routed).isEqualTo(known);
    }
  }
}
