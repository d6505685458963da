package dev.space.core.session;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.error.SpaceException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.time.Instant;
import java.util.Base64;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

/// Makes and checks attachment tokens: what a token opens is written in it and signed, so a check
/// needs the key alone.
///
/// A token is `spat_` and the base64url form of: version (1 byte), epoch (4), expiry in Unix
/// seconds (8), length (1) and text of the sandbox id, length (1) and text of the session id,
/// HMAC-SHA256 of all that (32).
public final class AttachmentToken {

  /// Keys are as long as the digest they feed.
  public static final int KEY_BYTES = 32;

  private static final String PREFIX = "spat_";
  private static final byte VERSION = 1;
  private static final int MAC_BYTES = 32;
  private static final int ID_BYTES_MAX = 64;
  private static final int FIXED_BYTES = 1 + 4 + 8 + 1 + 1 + MAC_BYTES;
  private static final int TEXT_LENGTH_MAX =
      PREFIX.length() + (FIXED_BYTES + 2 * ID_BYTES_MAX + 2) / 3 * 4;

  private final SecretKeySpec key;

  /// @param key [#KEY_BYTES] secret bytes
  public AttachmentToken(byte[] key) {
    if (key.length != KEY_BYTES) {
      throw Problem.of(
              ErrorCode.INVALID_REQUEST,
              "The key of the attachment tokens has " + key.length + " bytes.")
          .remedy("Give a key of " + KEY_BYTES + " bytes, or remove it: a new one is made then.")
          .toException();
    }
    this.key = new SecretKeySpec(key, "HmacSHA256");
  }

  /// What a token opens.
  public record Claims(String sandboxId, String sessionId, int epoch, Instant expiresAt) {}

  /// A token for these claims; fractions of a second of the expiry are cut off.
  public String sign(Claims claims) {
    byte[] sandbox = id(claims.sandboxId());
    byte[] session = id(claims.sessionId());
    var body = ByteBuffer.allocate(FIXED_BYTES + sandbox.length + session.length);
    body.put(VERSION).putInt(claims.epoch()).putLong(claims.expiresAt().getEpochSecond());
    body.put((byte) sandbox.length).put(sandbox);
    body.put((byte) session.length).put(session);
    body.put(mac(body.array(), body.position()));
    return PREFIX + Base64.getUrlEncoder().withoutPadding().encodeToString(body.array());
  }

  /// Reads a token that this key signed.
  ///
  /// @throws SpaceException UNAUTHENTICATED when it isn't one; TOKEN_EXPIRED
  public Claims verify(String token, Instant now) {
    if (token.length() > TEXT_LENGTH_MAX || !token.startsWith(PREFIX)) {
      throw refused();
    }
    byte[] bytes = decode(token.substring(PREFIX.length()));
    int signed = bytes.length - MAC_BYTES;
    if (signed < FIXED_BYTES - MAC_BYTES || bytes[0] != VERSION) {
      throw refused();
    }
    byte[] given = new byte[MAC_BYTES];
    System.arraycopy(bytes, signed, given, 0, MAC_BYTES);
    if (!MessageDigest.isEqual(given, mac(bytes, signed))) {
      throw refused();
    }
    var body = ByteBuffer.wrap(bytes, 1, signed - 1);
    int epoch = body.getInt();
    var expiresAt = Instant.ofEpochSecond(body.getLong());
    var claims = new Claims(id(body), id(body), epoch, expiresAt);
    if (!now.isBefore(expiresAt)) {
      throw Problem.of(ErrorCode.TOKEN_EXPIRED, "The attachment token has expired.")
          .remedy("Get a new one: POST /v1/sandboxes/{id}/sessions/{session_id}/attach.")
          .toException();
    }
    return claims;
  }

  private static byte[] decode(String text) {
    byte[] bytes;
    try {
      bytes = Base64.getUrlDecoder().decode(text);
    } catch (IllegalArgumentException e) {
      throw refused();
    }
    // Base64 has several spellings of the same bytes; one alone is a token.
    if (!Base64.getUrlEncoder().withoutPadding().encodeToString(bytes).equals(text)) {
      throw refused();
    }
    return bytes;
  }

  private static String id(ByteBuffer body) {
    byte[] text = new byte[body.get()];
    body.get(text);
    return new String(text, StandardCharsets.US_ASCII);
  }

  private static byte[] id(String text) {
    byte[] bytes = text.getBytes(StandardCharsets.US_ASCII);
    if (bytes.length > ID_BYTES_MAX) {
      throw Problem.of(ErrorCode.INVALID_REQUEST, "The id is longer than 64 characters.")
          .toException();
    }
    return bytes;
  }

  private byte[] mac(byte[] bytes, int length) {
    try {
      var mac = Mac.getInstance("HmacSHA256");
      mac.init(key);
      mac.update(bytes, 0, length);
      return mac.doFinal();
    } catch (GeneralSecurityException e) {
      throw Problem.of(ErrorCode.INTERNAL, "The Java runtime has no HmacSHA256.").toException(e);
    }
  }

  private static SpaceException refused() {
    return Problem.of(ErrorCode.UNAUTHENTICATED, "The attachment token is not valid.")
        .remedy("Use the attach_token of the session, unchanged.")
        .toException();
  }
}
