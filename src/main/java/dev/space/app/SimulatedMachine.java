package dev.space.app;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.template.Resources;
import dev.space.core.template.Template;
import dev.space.core.template.TemplateBuilder;
import dev.space.core.template.TemplateBuilder.Built;
import dev.space.vmm.simulated.SimulatedDisks;
import dev.space.vmm.simulated.SimulatedHost;
import dev.space.vmm.simulated.SimulatedImages;
import java.security.SecureRandom;
import java.time.InstantSource;
import java.util.Map;
import java.util.Optional;

/// A machine without VMs, for tests and benchmarks of the control plane.
final class SimulatedMachine {

  private static final String DIGEST = "sha256:" + "5".repeat(64);

  private SimulatedMachine() {}

  static Driver driver(InstantSource clock, SecureRandom random) {
    var host = new SimulatedHost(clock, random);
    var images = new SimulatedImages();
    var defaults =
        new Template.Defaults(
            Map.of(),
            Optional.of("user"),
            Optional.of("/home/user"),
            Optional.empty(),
            Optional.empty(),
            Resources.DEFAULT,
            0);
    images.add(DIGEST, defaults);
    TemplateBuilder builder =
        _ -> {
          throw Problem.of(ErrorCode.NOT_SUPPORTED, "A simulated machine builds no templates")
              .remedy("Start the service with vmm: auto, qemu or firecracker.")
              .toException();
        };
    return new Driver(
        host.vmm(),
        host.connector(),
        images,
        new SimulatedDisks(),
        builder,
        new Built(DIGEST, defaults, 0));
  }
}
