package dev.space.e2b;

import static org.assertj.core.api.Assertions.assertThat;

import dev.space.e2b.EnvdAccess.SignedUrl;
import java.time.Instant;
import java.util.Optional;
import org.junit.jupiter.api.Test;

class EnvdAccessTest {

  private static final Instant NOW = Instant.ofEpochSecond(1_800_000_000);

  private final EnvdAccess access = new EnvdAccess(new byte[32]);

  /// The check vector of E2B's own SDK tests.
  @Test
  void signsAsTheSdksDo() {
    SignedUrl url = url("hello.txt", "user", Optional.empty());
    assertThat(EnvdAccess.sign(url, "0tQG31xiMp0IOQfaz9dcwi72L1CPo8e0"))
        .isEqualTo("v1_gUtH/s9YCJWgCizjfUxuWfhFE4QSydOWEIIvfLwDr6E");
  }

  @Test
  void aSignatureIsGoodForOneSandboxOneFileOneUserOneUse() {
    SignedUrl plain = url("a", "u", Optional.empty());
    SignedUrl signed = signed(plain, EnvdAccess.sign(plain, access.envdToken("one")));
    assertThat(access.signedFor("one", signed)).isTrue();
    assertThat(access.signedFor("two", signed)).isFalse();
    for (SignedUrl other :
        new SignedUrl[] {
          url("b", "u", Optional.empty()),
          url("a", "v", Optional.empty()),
          url("a", "u", Optional.of("1800000000")),
          new SignedUrl("a", "write", "u", "", Optional.empty())
        }) {
      assertThat(access.signedFor("one", signed(other, signed.signature()))).isFalse();
    }
  }

  @Test
  void expiryIsToTheSecondAndNonsenseIsExpired() {
    assertThat(EnvdAccess.expired(url("a", "", Optional.empty()), NOW)).isFalse();
    assertThat(EnvdAccess.expired(url("a", "", Optional.of("1800000000")), NOW)).isFalse();
    assertThat(EnvdAccess.expired(url("a", "", Optional.of("1799999999")), NOW)).isTrue();
    assertThat(EnvdAccess.expired(url("a", "", Optional.of("soon")), NOW)).isTrue();
  }

  @Test
  void tokensDifferBySandboxPurposeAndKey() {
    assertThat(access.envdToken("one"))
        .matches("[0-9a-f]{40}")
        .isEqualTo(new EnvdAccess(new byte[32]).envdToken("one"))
        .isNotEqualTo(access.envdToken("two"))
        .isNotEqualTo(access.trafficToken("one"));
    byte[] other = new byte[32];
    other[31] = 1;
    assertThat(access.envdToken("one")).isNotEqualTo(new EnvdAccess(other).envdToken("one"));
  }

  private static SignedUrl url(String path, String user, Optional<String> expiration) {
    return new SignedUrl(path, "read", user, "", expiration);
  }

  private static SignedUrl signed(SignedUrl url, String signature) {
    return new SignedUrl(url.path(), url.operation(), url.user(), signature, url.expiration());
  }
}
