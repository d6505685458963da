package dev.space.dataplane;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.error.SpaceException;
import dev.space.core.session.AttachmentToken;
import dev.space.core.session.AttachmentToken.Claims;
import java.time.Instant;
import java.time.InstantSource;

/// Tokens that open one port of one sandbox to whoever has no API key, such as a browser. They are
/// signed like attachment tokens, with the port in the session's place.
public final class PortTokens {

  private static final String PORT = "port:";

  private final AttachmentToken tokens;
  private final InstantSource clock;

  public PortTokens(AttachmentToken tokens, InstantSource clock) {
    this.tokens = tokens;
    this.clock = clock;
  }

  /// A token for a port until an instant.
  public String sign(String sandboxId, int port, Instant expiresAt) {
    return tokens.sign(new Claims(sandboxId, PORT + port, 0, expiresAt));
  }

  /// @throws dev.space.core.error.SpaceException UNAUTHENTICATED, TOKEN_EXPIRED; FORBIDDEN when it
  ///   belongs to another port or sandbox
  void check(String token, String sandboxId, int port) {
    Claims claims = tokens.verify(token, clock.instant());
    if (!claims.sandboxId().equals(sandboxId) || !claims.sessionId().equals(PORT + port)) {
      throw Problem.of(ErrorCode.FORBIDDEN, "The token belongs to another port.")
          .remedy("Make one for this port: POST /v1/sandboxes/{id}/port-tokens.")
          .toException();
    }
  }

  /// Whether a token is good for this port now.
  boolean opens(String token, String sandboxId, int port) {
    try {
      check(token, sandboxId, port);
      return true;
    } catch (SpaceException _) {
      return false;
    }
  }
}
