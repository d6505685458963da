package dev.space.app;

import java.io.IOException;
import java.nio.file.Path;

/// The same lives with the Firecracker driver.
class FirecrackerLifecycleVmTest extends LifecycleVmTest {

  @Override
  Path prepare(String name) throws IOException {
    return FirecrackerDaemons.prepare(name);
  }
}
