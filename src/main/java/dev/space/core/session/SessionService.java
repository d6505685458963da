package dev.space.core.session;

import dev.space.core.access.Caller;
import dev.space.core.guest.Guest.OutputSink;
import dev.space.core.guest.Guest.SignalScope;
import dev.space.core.guest.ProcessSpec.PtySize;
import dev.space.core.operation.IdempotencyKey;
import dev.space.core.store.Page;
import java.util.Optional;

/// Sessions: made by callers of the API, used by holders of attachment tokens.
public final class SessionService {

  public SessionTicket create(
      Caller caller, String sandboxId, CreateSession request, Optional<IdempotencyKey> key) {
    throw new UnsupportedOperationException();
  }

  public Session get(Caller caller, String sandboxId, String sessionId) {
    throw new UnsupportedOperationException();
  }

  public Page<Session> list(Caller caller, String sandboxId, int limit, Optional<String> cursor) {
    throw new UnsupportedOperationException();
  }

  /// Kills the whole tree; the session stays readable with its exit.
  public Session kill(Caller caller, String sandboxId, String sessionId) {
    throw new UnsupportedOperationException();
  }

  /// A new token for a session; older ones stay good until they expire.
  public SessionTicket renew(Caller caller, String sandboxId, String sessionId) {
    throw new UnsupportedOperationException();
  }

  /// Makes all tokens of a session worthless.
  public void revoke(Caller caller, String sandboxId, String sessionId) {
    throw new UnsupportedOperationException();
  }

  /// Checks a token without asking the database of the control plane.
  ///
  /// @throws dev.space.core.error.SpaceException UNAUTHENTICATED, TOKEN_EXPIRED or FORBIDDEN
  public Attachment attach(String sessionId, String token) {
    throw new UnsupportedOperationException();
  }

  /// The data plane's hold on one session.
  public interface Attachment {
    Session session();

    /// Starts the process if it hasn't, then gives every event after `afterSeq` to the sink, up to
    /// and with the exit. A stream whose backend is lost throws instead of ending.
    void read(long afterSeq, OutputSink sink);

    /// Writes input at its position in the whole input and says where the next byte goes.
    long writeStdin(long offset, byte[] data, boolean eof);

    void signal(int signal, SignalScope scope);

    void resize(PtySize size);
  }
}
