package dev.space.http;

import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/// Prints what an event costs, sent one by one and in bursts.
@Tag("slow")
class SseRateTest {
  private static final int EVENTS = 200_000;

  @Test
  void whatAnEventCosts() throws Exception {
    byte[] data = "x".repeat(48).getBytes(StandardCharsets.UTF_8);
    for (int burst : new int[] {1, 1, 16, 64}) {
      try (var server =
              new TestServer(
                  e -> {
                    EventStream events = e.events();
                    for (int i = 0; i < EVENTS; i++) {
                      events.append(Integer.toString(i), "stdout", data);
                      if (i % burst == burst - 1) {
                        events.flush();
                      }
                    }
                  });
          var client = server.client()) {
        var os =
            (com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
        long cpu = os.getProcessCpuTime();
        long start = System.nanoTime();
        client.send("GET / HTTP/1.0\r\n\r\n");
        byte[] buffer = new byte[256 * 1024];
        while (client.in().read(buffer) >= 0) {}
        double seconds = (System.nanoTime() - start) / 1e9;
        System.err.printf(
            "RATE burst %d: %.0f events/s, %.2f us CPU/event (client included)%n",
            burst, EVENTS / seconds, (os.getProcessCpuTime() - cpu) / 1e3 / EVENTS);
      }
    }
  }
}
