package dev.space.core.session;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.space.Seeded;
import dev.space.core.error.ErrorCode;
import dev.space.core.error.SpaceException;
import dev.space.core.session.AttachmentToken.Claims;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.util.Arrays;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;

@DisplayName("behaviour 40: attachment tokens")
class AttachmentTokenTest {

  private static final Instant NOW = Instant.ofEpochSecond(1_800_000_000);
  private static final Claims CLAIMS = new Claims("isandbox", "ssession", 7, NOW.plusSeconds(60));
  private final AttachmentToken tokens = tokens(1);

  private static AttachmentToken tokens(int fill) {
    byte[] key = new byte[AttachmentToken.KEY_BYTES];
    Arrays.fill(key, (byte) fill);
    return new AttachmentToken(key);
  }

  private void refused(String token, ErrorCode code, Instant now) {
    assertThatThrownBy(() -> tokens.verify(token, now))
        .isInstanceOfSatisfying(
            SpaceException.class,
            e -> {
              assertThat(e.code()).isEqualTo(code);
              assertThat(e.problem().remedy()).isPresent();
            });
  }

  @Test
  void says_what_was_signed_until_it_expires() {
    String token = tokens.sign(CLAIMS);
    assertThat(tokens.verify(token, NOW)).isEqualTo(CLAIMS);
    assertThat(tokens.verify(token, NOW.plusMillis(59_999))).isEqualTo(CLAIMS);
    refused(token, ErrorCode.TOKEN_EXPIRED, NOW.plusSeconds(60));
  }

  @Test
  void of_another_key_is_refused() {
    refused(tokens(2).sign(CLAIMS), ErrorCode.UNAUTHENTICATED, NOW);
  }

  @Test
  void every_single_changed_character_is_refused() {
    String token = tokens.sign(CLAIMS);
    for (int i = 0; i < token.length(); i++) {
      for (char c : "AQgw_-9.= \n".toCharArray()) {
        if (token.charAt(i) != c) {
          refused(
              token.substring(0, i) + c + token.substring(i + 1), ErrorCode.UNAUTHENTICATED, NOW);
        }
      }
      refused(token.substring(0, i), ErrorCode.UNAUTHENTICATED, NOW);
      refused(token.substring(0, i) + "A" + token.substring(i), ErrorCode.UNAUTHENTICATED, NOW);
    }
    refused(token + "=", ErrorCode.UNAUTHENTICATED, NOW);
    refused(token.repeat(100), ErrorCode.UNAUTHENTICATED, NOW);
  }

  @Test
  void any_text_is_refused_and_never_more() {
    Seeded.times(
        1000,
        input -> {
          String text = input.text(300);
          refused(text, ErrorCode.UNAUTHENTICATED, NOW);
          refused("spat_" + text, ErrorCode.UNAUTHENTICATED, NOW);
        });
  }

  @Test
  void any_bytes_are_refused_and_never_more() {
    Seeded.times(
        1000,
        input -> {
          byte[] bytes = input.bytes(200);
          String text = java.util.Base64.getUrlEncoder().withoutPadding().encodeToString(bytes);
          refused("spat_" + text, ErrorCode.UNAUTHENTICATED, NOW);
        });
  }

  @Test
  void any_claims_come_back() {
    Seeded.times(
        200,
        input -> {
          int epoch = input.below(Integer.MAX_VALUE);
          var claims = new Claims(input.word(64), input.word(64), epoch, NOW.plusSeconds(1));
          String token = tokens.sign(claims);
          assertThat(tokens.verify(token, NOW)).isEqualTo(claims);
          assertThat(token.getBytes(StandardCharsets.US_ASCII)).hasSizeLessThan(256);
        });
  }
}
