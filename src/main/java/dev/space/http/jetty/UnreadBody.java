package dev.space.http.jetty;

import java.io.IOException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.eclipse.jetty.io.Content;
import org.eclipse.jetty.server.Request;
import org.eclipse.jetty.util.Blocker;

/// Reads away what a failed handler left of a body: many clients write all before they read, and a
/// connection that is closed on unread bytes may take the answer with it.
final class UnreadBody {
  private static final long NANOS_MAX = TimeUnit.SECONDS.toNanos(2);

  private UnreadBody() {}

  /// Whether the body was read to its end within the bounds.
  static boolean drain(Request request, int bytesMax) {
    if (request.getLength() > bytesMax) {
      return false;
    }
    long deadline = System.nanoTime() + NANOS_MAX;
    int left = bytesMax;
    while (left > 0 && System.nanoTime() < deadline) {
      Content.Chunk chunk = request.read();
      if (chunk == null) {
        if (!awaitContent(request, deadline)) {
          return false;
        }
        continue;
      }
      if (Content.Chunk.isFailure(chunk)) {
        return false;
      }
      left -= chunk.remaining();
      boolean last = chunk.isLast();
      chunk.release();
      if (last) {
        return true;
      }
    }
    return false;
  }

  private static boolean awaitContent(Request request, long deadline) {
    try (Blocker.Runnable arrived = Blocker.runnable()) {
      request.demand(arrived);
      arrived.block(
          Math.max(1, TimeUnit.NANOSECONDS.toMillis(deadline - System.nanoTime())),
          TimeUnit.MILLISECONDS);
      return true;
    } catch (IOException | TimeoutException _) {
      return false;
    }
  }
}
