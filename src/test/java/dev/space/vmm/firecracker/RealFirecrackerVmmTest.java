package dev.space.vmm.firecracker;

import dev.space.host.UserIds;
import dev.space.vmm.firecracker.FirecrackerSettings.Jail;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Optional;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;

/// The contract against the Firecracker that `FIRECRACKER_BIN` names, and the jailer that
/// `JAILER_BIN` names if it is given. Skipped, with the reason, where there is none or no KVM.
@Tag("vm")
@Tag("slow")
class RealFirecrackerVmmTest extends FirecrackerContract {

  @BeforeAll
  static void requireFirecracker() {
    String binary = System.getenv().getOrDefault("FIRECRACKER_BIN", "");
    Assumptions.assumeFalse(binary.isEmpty(), "FIRECRACKER_BIN names no Firecracker");
    Path kvm = Path.of("/dev/kvm");
    Assumptions.assumeTrue(
        Files.isReadable(kvm) && Files.isWritable(kvm), "/dev/kvm can't be opened here");
  }

  @Override
  String binary() {
    return System.getenv().getOrDefault("FIRECRACKER_BIN", "firecracker");
  }

  @Override
  Jail jail() {
    return Optional.ofNullable(System.getenv("JAILER_BIN"))
        .<Jail>map(jailer -> new Jail.Jailer(jailer, new UserIds.Range(210_000, 100)))
        .orElseGet(Jail.None::new);
  }
}
