package dev.space.http;

import static org.assertj.core.api.Assertions.assertThat;

import dev.space.core.error.SpaceException;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;

/// Whatever a caller sends is read or refused with a 4xx. Behaviour 38.
class StrictReadingTest {
  record Body(
      Optional<String> text,
      Optional<Integer> number,
      Optional<Boolean> flag,
      Optional<List<String>> list,
      Optional<Map<String, String>> map,
      Optional<Body> inner) {}

  @Property(tries = 2000)
  void queriesAreReadOrRefused(@ForAll String raw) {
    refusedAtMost(() -> Query.parse(raw));
  }

  @Property(tries = 2000)
  void bodiesAreReadOrRefused(@ForAll byte[] raw) {
    refusedAtMost(() -> Json.parse(raw, Body.class));
  }

  @Property(tries = 2000)
  void almostBodiesAreReadOrRefused(@ForAll("fragments") List<String> fragments) {
    byte[] raw = String.join("", fragments).getBytes(java.nio.charset.StandardCharsets.UTF_8);
    refusedAtMost(() -> Json.parse(raw, Body.class));
  }

  @net.jqwik.api.Provide
  net.jqwik.api.Arbitrary<List<String>> fragments() {
    return net.jqwik.api.Arbitraries.of(
            "{",
            "}",
            "[",
            "]",
            ":",
            ",",
            "\"text\"",
            "\"number\"",
            "\"flag\"",
            "\"list\"",
            "\"map\"",
            "\"inner\"",
            "null",
            "true",
            "1",
            "-1e9",
            "99999999999999999999",
            "\"",
            "\\u0000",
            "\\",
            " ",
            "1.5",
            "\"x\"")
        .list()
        .ofMaxSize(20);
  }

  @Property(tries = 2000)
  void whatWasEncodedIsReadBack(@ForAll String text) {
    String sane =
        new String(
            text.getBytes(java.nio.charset.StandardCharsets.UTF_8),
            java.nio.charset.StandardCharsets.UTF_8);
    String raw = java.net.URLEncoder.encode(sane, java.nio.charset.StandardCharsets.UTF_8);
    assertThat(Query.parse("x=" + raw).one("x")).contains(sane);
  }

  private static void refusedAtMost(Runnable reading) {
    try {
      reading.run();
    } catch (SpaceException e) {
      assertThat(e.code().status()).isBetween(400, 499);
      assertThat(e.problem().detail()).isNotBlank();
    }
  }
}
