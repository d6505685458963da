package dev.space.core.session;

import java.time.Instant;

/// A session and the right to attach to it.
///
/// @param token opens this session alone; a secret
public record SessionTicket(Session session, String token, Instant expiresAt) {

  /// Path of the attachment on the data plane's listener.
  public String attachPath() {
    return "/v1/attach/" + session.id();
  }

  @Override
  public String toString() {
    return "SessionTicket[" + session.id() + "]";
  }
}
