package dev.space.cli;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.space.http.Router;
import dev.space.http.TestServer;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

class SessionInputTest {

  @Test
  void inputGoesOnWhereItsConnectionBroke() {
    byte[] input = new byte[200_000];
    for (int i = 0; i < input.length; i++) {
      input[i] = (byte) (i * 7);
    }
    var taken = new ByteArrayOutputStream();
    var ended = new AtomicBoolean();
    var calls = new AtomicInteger();
    Router routes =
        Router.builder()
            .post(
                "/v1/attach/s1/stdin",
                exchange -> {
                  byte[] piece = exchange.body().readAllBytes();
                  int offset = (int) exchange.query().integer("offset", -1, 0, Integer.MAX_VALUE);
                  int call = calls.incrementAndGet();
                  if (call == 2) {
                    exchange.abort(); // nothing of it was taken
                    return;
                  }
                  int known = taken.size() - offset;
                  taken.write(
                      piece, Math.min(known, piece.length), Math.max(0, piece.length - known));
                  if (call == 3) {
                    exchange.abort(); // all of it was, and the answer is lost
                    return;
                  }
                  ended.set(exchange.query().flag("eof", false));
                  exchange.status(204).sendEmpty();
                })
            .build();
    try (var server = new TestServer(routes)) {
      new SessionInput(new ByteArrayInputStream(input), server.url("/v1/attach/s1"), "token")
          .start();
      await().untilTrue(ended);
    }
    assertThat(taken.toByteArray()).isEqualTo(input);
  }
}
