package dev.space.core.session;

import java.time.Instant;

/// A session and the right to attach to it.
///
/// @param token opens this session alone; a secret
public record SessionTicket(Session session, String token, Instant expiresAt) {

  @Override
  public String toString() {
    return "SessionTicket[" + session.id() + "]";
  }
}
