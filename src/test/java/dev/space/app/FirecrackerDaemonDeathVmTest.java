package dev.space.app;

import java.io.IOException;
import java.nio.file.Path;

/// The same ends and starts with the Firecracker driver.
class FirecrackerDaemonDeathVmTest extends DaemonDeathVmTest {

  @Override
  String monitor() {
    return FirecrackerDaemons.settings();
  }

  @Override
  Path prepare(String name) throws IOException {
    return FirecrackerDaemons.prepare(name);
  }
}
