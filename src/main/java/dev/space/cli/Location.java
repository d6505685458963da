package dev.space.cli;

import dev.space.app.DataDirectory;
import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.wire.Endpoint;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Optional;
import tools.jackson.core.JacksonException;
import tools.jackson.databind.JsonNode;

/// Where the service is and what opens it: what was said on the command line or in the environment,
/// else what the daemon of this machine left in its data directory.
record Location(Surroundings surroundings, Optional<String> urlFlag, Optional<Path> dataFlag) {

  private static final String DEFAULT_URL = "http://127.0.0.1:8700";

  /// The data directory on this machine.
  Path dataDir() {
    return dataFlag
        .or(() -> surroundings.variable("SPACE_DATA_DIR").map(Path::of))
        .orElseGet(() -> DataDirectory.defaultPath(surroundings.env()))
        .toAbsolutePath()
        .normalize();
  }

  /// The URL somebody chose, if anybody did.
  Optional<String> chosenUrl() {
    return urlFlag.or(() -> surroundings.variable("SPACE_URL"));
  }

  /// The URL of a daemon that runs on this machine, by what it wrote; it may have died since.
  Optional<String> localUrl() {
    return local("control_url");
  }

  /// The data plane: `SPACE_DATA_URL`, else what the daemon of this machine wrote, else the port
  /// after that of the control plane.
  String dataUrl() {
    Optional<String> known = surroundings.variable("SPACE_DATA_URL");
    if (known.isEmpty() && chosenUrl().isEmpty()) {
      known = local("data_url");
    }
    return known.orElseGet(
        () -> {
          Endpoint.Tcp control = Endpoint.ofUrl(url());
          return new Endpoint.Tcp(control.host(), control.port() + 1).toString();
        });
  }

  private Path daemonFile() {
    return dataDir().resolve("daemon.json");
  }

  private Optional<String> local(String field) {
    Path file = daemonFile();
    try {
      JsonNode daemon = Json.read(Files.readString(file));
      long pid = daemon.path("pid").asLong(0);
      String url = daemon.path(field).asString("");
      return !url.isEmpty() && ProcessHandle.of(pid).isPresent()
          ? Optional.of(url)
          : Optional.empty();
    } catch (IOException | JacksonException e) {
      return Optional.empty();
    }
  }

  String url() {
    return chosenUrl().or(this::localUrl).orElse(DEFAULT_URL);
  }

  /// The API key.
  ///
  /// @throws dev.space.core.error.SpaceException UNAUTHENTICATED when none is found
  String key() {
    Optional<String> given = surroundings.variable("SPACE_API_KEY");
    if (given.isPresent()) {
      return given.get().strip();
    }
    Path file = dataDir().resolve("api-key");
    try {
      return Files.readString(file).strip();
    } catch (IOException e) {
      throw Problem.of(ErrorCode.UNAUTHENTICATED, "No API key: " + file + " can't be read")
          .because(
              Files.exists(file)
                  ? "it belongs to another user"
                  : "no daemon was ever started with this data directory")
          .remedy(
              "Set SPACE_API_KEY, point --data-dir at the daemon's data directory,"
                  + " or start a daemon: ./space serve")
          .toException(e);
    }
  }
}
