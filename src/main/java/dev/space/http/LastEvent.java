package dev.space.http;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.error.SpaceException;
import java.util.Optional;

/// Where the client of a stream of numbered events goes on.
public final class LastEvent {

  private LastEvent() {}

  /// The number of the last event it has: `Last-Event-ID` when it comes back by itself, else the
  /// query's `after`.
  ///
  /// @param absent when it says neither
  /// @throws SpaceException INVALID_REQUEST
  public static long seen(Exchange exchange, long absent) {
    Optional<String> last = exchange.header("Last-Event-ID").filter(id -> !id.isEmpty());
    if (last.isEmpty()) {
      return exchange.query().integer("after", absent, 0, Long.MAX_VALUE);
    }
    if (!last.get().matches("[0-9]{1,18}")) {
      throw Problem.of(ErrorCode.INVALID_REQUEST, "The Last-Event-ID is no number of an event")
          .remedy("Send the id of the last event you got, or leave the header out.")
          .toException();
    }
    return Long.parseLong(last.get());
  }
}
