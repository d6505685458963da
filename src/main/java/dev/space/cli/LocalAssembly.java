package dev.space.cli;

import dev.space.app.Certificates;
import dev.space.app.Daemon;
import dev.space.app.Machine;
import dev.space.app.SpaceConfig;
import dev.space.app.SpaceConfig.VmmChoice;
import dev.space.core.error.Problem;
import dev.space.core.template.TemplateBuilder.BuildLog;
import dev.space.host.Prerequisite;
import java.security.SecureRandom;
import java.util.List;
import java.util.Optional;
import java.util.function.Consumer;

/// The real service, in this process.
record LocalAssembly(Surroundings surroundings) implements Assembly {

  private Machine machine(SpaceConfig config) {
    return new Machine(config, surroundings.home(), surroundings.env());
  }

  @Override
  public List<Prerequisite> examine(SpaceConfig config) {
    return machine(config).examine();
  }

  @Override
  public List<Prerequisite> examineForProduction(SpaceConfig config) {
    return machine(config).examineForProduction();
  }

  @Override
  public Optional<Problem> lacking(SpaceConfig config) {
    if (config.vmm() == VmmChoice.SIMULATED) {
      return Optional.empty();
    }
    Machine machine = machine(config);
    return machine.prepared() ? Optional.empty() : Prerequisite.problem(machine.look());
  }

  @Override
  public void prepare(SpaceConfig config, Consumer<String> progress) {
    if (config.vmm() == VmmChoice.SIMULATED) {
      return;
    }
    Machine machine = machine(config);
    if (!machine.prepared()) {
      BuildLog log =
          new BuildLog() {
            private String step = "";

            @Override
            public void step(String text) {
              step = text;
              progress.accept(text);
            }

            @Override
            public void line(String text) {
              progress.accept(step + ": " + text);
            }
          };
      OnExit.unwinding(() -> machine.setUp(log));
    }
  }

  @Override
  public Certificates.Made certify(SpaceConfig config, String domain) {
    return new Certificates(config.dataDir(), surroundings.env(), new SecureRandom()).make(domain);
  }

  @Override
  public Running start(SpaceConfig config, boolean announced) {
    Daemon daemon = Daemon.start(config, surroundings.home(), surroundings.env(), announced);
    return new Running() {
      @Override
      public String controlUrl() {
        return daemon.controlUrl();
      }

      @Override
      public String dataUrl() {
        return daemon.dataUrl();
      }

      @Override
      public Optional<String> newKeyFile() {
        return daemon.keyIsNew()
            ? Optional.of(config.dataDir().resolve("api-key").toString())
            : Optional.empty();
      }

      @Override
      public void awaitStop() throws InterruptedException {
        daemon.awaitStop();
      }

      @Override
      public void close() {
        daemon.close();
      }
    };
  }
}
