package dev.space.vmm.firecracker;

import dev.space.vmm.firecracker.FirecrackerSettings.Jail;
import java.nio.file.Path;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.io.TempDir;

/// The contract against the fake, which runs guests through QEMU; without a jail.
@Tag("vm")
@Tag("slow")
class FirecrackerVmmTest extends FirecrackerContract {

  @TempDir static Path programs;
  private static FakeFirecracker.@Nullable Installed fake;

  static synchronized FakeFirecracker.Installed fake() {
    FakeFirecracker.Installed known = fake;
    if (known == null) {
      known = FakeFirecracker.install(programs, "{\"guest\":\"qemu\"}");
      fake = known;
    }
    return known;
  }

  @Override
  String binary() {
    return fake().firecracker().toString();
  }

  @Override
  Jail jail() {
    return new Jail.None();
  }
}
