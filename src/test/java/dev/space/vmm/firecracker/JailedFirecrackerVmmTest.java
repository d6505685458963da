package dev.space.vmm.firecracker;

import dev.space.host.UserIds;
import dev.space.vmm.firecracker.FirecrackerSettings.Jail;
import java.nio.file.Path;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.io.TempDir;

/// The contract against the fake and its jailer: the same guests, each in a root, a process id
/// namespace and a network namespace of its own, as a user of its own.
@Tag("vm")
@Tag("slow")
class JailedFirecrackerVmmTest extends FirecrackerContract {

  @TempDir static Path programs;
  private static FakeFirecracker.@Nullable Installed fake;

  @BeforeAll
  static void requireRoot() {
    Assumptions.assumeTrue(System.getProperty("user.name").equals("root"), "a jailer needs root");
  }

  private static synchronized FakeFirecracker.Installed fake() {
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
    return new Jail.Jailer(fake().jailer().toString(), new UserIds.Range(210_000, 100));
  }
}
