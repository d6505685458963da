package dev.space.e2b;

import dev.space.core.sandbox.Sandbox;
import java.nio.charset.StandardCharsets;
import java.security.InvalidKeyException;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.time.Instant;
import java.util.Base64;
import java.util.HexFormat;
import java.util.Optional;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

/// Access to the data plane of sandboxes: one token per sandbox, derived from the service's key, so
/// that it is the same after every pause and needs no storage; and signatures of file URLs.
final class EnvdAccess {

  private static final String HMAC = "HmacSHA256";

  private final SecretKeySpec key;

  /// @param secret at least 32 random bytes, kept by the service
  EnvdAccess(byte[] secret) {
    this.key = new SecretKeySpec(secret, HMAC);
  }

  /// The token that the SDK sends as `X-Access-Token`.
  String envdToken(String sandboxId) {
    return derive("envd:" + sandboxId);
  }

  /// The token that callers of private ports send as `e2b-traffic-access-token`.
  String trafficToken(String sandboxId) {
    return derive("traffic:" + sandboxId);
  }

  /// The token in the URL to which files for a template build are uploaded.
  String uploadToken(String project, String hash) {
    return derive("upload:" + project + ":" + hash);
  }

  boolean mayUpload(String project, String hash, String presented) {
    return same(uploadToken(project, hash), presented);
  }

  private String derive(String text) {
    try {
      Mac mac = Mac.getInstance(HMAC);
      mac.init(key);
      byte[] sum = mac.doFinal(text.getBytes(StandardCharsets.UTF_8));
      return HexFormat.of().formatHex(sum, 0, 20);
    } catch (NoSuchAlgorithmException | InvalidKeyException e) {
      throw new AssertionError("every JDK has " + HMAC, e);
    }
  }

  /// Whether a presented token is the sandbox's.
  boolean mayEnter(Sandbox sandbox, String presented) {
    return same(envdToken(sandbox.id()), presented);
  }

  boolean mayPass(Sandbox sandbox, String presented) {
    return same(trafficToken(sandbox.id()), presented);
  }

  /// The parts of a signed file URL. The texts are as they stand in the query, decoded once.
  record SignedUrl(
      String path, String operation, String user, String signature, Optional<String> expiration) {}

  /// Whether the signature was made with the sandbox's token; expiry is another question.
  boolean signedFor(String sandboxId, SignedUrl url) {
    return same(sign(url, envdToken(sandboxId)), url.signature());
  }

  /// Whether the URL's time is over, which is asked only of those that are signed right.
  static boolean expired(SignedUrl url, Instant now) {
    if (url.expiration().isEmpty()) {
      return false;
    }
    try {
      return Long.parseLong(url.expiration().get()) < now.getEpochSecond();
    } catch (NumberFormatException _) {
      return true;
    }
  }

  /// `v1_` and base64 without padding of SHA-256 over `path:operation:user:token[:expiry]`, as the
  /// SDKs compute it.
  static String sign(SignedUrl url, String token) {
    String text =
        String.join(":", url.path(), url.operation(), url.user(), token)
            + url.expiration().map(e -> ":" + e).orElse("");
    try {
      byte[] sum =
          MessageDigest.getInstance("SHA-256").digest(text.getBytes(StandardCharsets.UTF_8));
      return "v1_" + Base64.getEncoder().withoutPadding().encodeToString(sum);
    } catch (NoSuchAlgorithmException e) {
      throw new AssertionError("every JDK has SHA-256", e);
    }
  }

  private static boolean same(String expected, String presented) {
    return MessageDigest.isEqual(
        expected.getBytes(StandardCharsets.UTF_8), presented.getBytes(StandardCharsets.UTF_8));
  }
}
