package dev.space.app;

import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.TestInstance;

/// The same SDKs against a service that runs its guests with the Firecracker driver.
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
class FirecrackerSdkTest extends SdkTest {

  FirecrackerSdkTest() {
    SETTINGS.put("vmm", "firecracker");
    SETTINGS.put("firecracker.binary", FirecrackerDaemons.fake().firecracker().toString());
    SETTINGS.put("firecracker.jailer", "none");
    SETTINGS.put("firecracker.call_seconds", "30");
  }

  @AfterAll
  static void back() {
    SETTINGS.clear();
  }
}
