package dev.space.http;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.space.Seeded;
import dev.space.core.error.ErrorCode;
import dev.space.core.error.SpaceException;
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// Whatever a caller sends is read or refused with a 4xx. Behaviour 38.
class StrictReadingTest {
  record Body(
      Optional<String> text,
      Optional<Integer> number,
      Optional<Boolean> flag,
      Optional<List<String>> list,
      Optional<Map<String, String>> map,
      Optional<Body> inner) {}

  private static final List<String> FRAGMENTS =
      List.of(
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
          "\"x\"");

  @Test
  void queriesAreReadOrRefused() {
    Seeded.times(
        2000,
        input -> {
          String raw = input.text(100);
          refusedAtMost(() -> Query.parse(raw));
        });
  }

  @Test
  void bodiesAreReadOrRefused() {
    Seeded.times(
        2000,
        input -> {
          byte[] raw = input.bytes(100);
          refusedAtMost(() -> Json.parse(raw, Body.class));
        });
  }

  @Test
  void almostBodiesAreReadOrRefused() {
    Seeded.times(
        2000,
        input -> {
          byte[] raw = input.joined(FRAGMENTS, 20).getBytes(StandardCharsets.UTF_8);
          refusedAtMost(() -> Json.parse(raw, Body.class));
        });
  }

  @Test
  void whatWasEncodedIsReadBack() {
    Seeded.times(
        2000,
        input -> {
          byte[] bytes = input.text(100).getBytes(StandardCharsets.UTF_8);
          String sane = new String(bytes, StandardCharsets.UTF_8);
          String raw = URLEncoder.encode(sane, StandardCharsets.UTF_8);
          assertThat(Query.parse("x=" + raw).one("x")).contains(sane);
        });
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "\\ud800",
        "\\udc00x",
        "\\ud83d\\u0041",
        "\\ud83dx",
        "\\\\\\uDBFF",
        "\\udc00\\ud800"
      })
  void halfACharacterIsRefusedWhereverItStands(String half) {
    for (String body :
        List.of("{\"text\":\"" + half + "\"}", "{\"map\":{\"" + half + "\":\"x\"}}")) {
      byte[] raw = body.getBytes(StandardCharsets.UTF_8);
      assertThatThrownBy(() -> Json.parse(raw, Body.class))
          .isInstanceOfSatisfying(
              SpaceException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.MALFORMED_BODY));
      assertThatThrownBy(() -> Json.tree(raw)).isInstanceOf(SpaceException.class);
    }
  }

  @Test
  void wholeCharactersAreRead() {
    String body = "{\"text\":\"\\ud83d\\ude00 \\\\ud800 \\u00e9\"}";
    assertThat(Json.parse(body.getBytes(StandardCharsets.UTF_8), Body.class).text())
        .contains("\ud83d\ude00 \\ud800 \u00e9");
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
