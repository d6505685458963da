package dev.space.cli;

import dev.space.app.Certificates;
import dev.space.app.SpaceConfig;
import dev.space.core.error.Problem;
import dev.space.host.Prerequisite;
import java.util.List;
import java.util.Optional;
import java.util.function.Consumer;

/// The service as this process can run it: the one place where commands meet the assembly.
interface Assembly {

  /// What the service needs of the machine, as it was found.
  List<Prerequisite> examine(SpaceConfig config);

  /// What a host needs before people who distrust each other may share it, as it was found.
  List<Prerequisite> examineForProduction(SpaceConfig config);

  /// What is not there yet, told in one problem; empty when the service can start.
  Optional<Problem> lacking(SpaceConfig config);

  /// Prepares the machine. Nothing is done twice, and an interrupted preparation goes on.
  void prepare(SpaceConfig config, Consumer<String> progress);

  /// Makes a wildcard certificate below the service's own authority, which is made when there is
  /// none.
  Certificates.Made certify(SpaceConfig config, String domain);

  /// Starts the service.
  ///
  /// @param announced whether other commands on this machine are to find and use it
  /// @throws dev.space.core.error.SpaceException CONFLICT when another has the data directory
  Running start(SpaceConfig config, boolean announced);

  /// A service that runs in this process.
  interface Running extends AutoCloseable {
    String controlUrl();

    String dataUrl();

    /// The file with the API key, when this start made it.
    Optional<String> newKeyFile();

    /// Waits until the service was stopped.
    void awaitStop() throws InterruptedException;

    @Override
    void close();
  }
}
