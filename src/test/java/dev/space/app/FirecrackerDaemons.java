package dev.space.app;

import dev.space.image.TestImages;
import dev.space.vmm.firecracker.FakeFirecracker;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/// Data directories of daemons that run their guests with Firecracker's stand-in, without a jail.
final class FirecrackerDaemons {

  private FirecrackerDaemons() {}

  static FakeFirecracker.Installed fake() {
    return FakeFirecracker.install(TestImages.data().resolve("fake"), "{\"guest\":\"qemu\"}");
  }

  /// What a configuration file says. A guest in software on a busy machine takes its time.
  static String settings() {
    return """
        vmm: firecracker
        firecracker:
          binary: %s
          jailer: none
          call_seconds: 30
        """
        .formatted(fake().firecracker());
  }

  static Path prepare(String name) throws IOException {
    Path dir = RealDaemon.prepareApart("fc-" + name, "fc-base");
    Files.writeString(dir.resolve("config.yaml"), settings());
    return dir;
  }
}
