package dev.space.core.session;

import dev.space.core.guest.OutputEvent;
import dev.space.core.guest.ProcessExit;
import java.time.Duration;
import java.util.List;
import java.util.Optional;

/// The numbered, bounded output of one session on the node's disk. One thread appends, many read.
///
/// The first part and the last part of the output are kept. When the bound is reached the middle
/// goes, and readers get one [OutputEvent.Gap] in its place. What an open reader has not read yet
/// never goes: `append` waits for it instead.
public interface OutputLog extends AutoCloseable {

  /// Number of the last event that survives a crash of the daemon. What follows is asked from the
  /// guest again.
  long durableSeq();

  /// Number of the last event, 0 when there is none.
  long lastSeq();

  /// How the process ended, when the last event says so.
  Optional<ProcessExit> exit();

  /// Adds the next event. Events that are there already are skipped, so a repeated read of the
  /// guest's output does no harm. An exit never waits.
  ///
  /// @throws InterruptedException while it waits for a reader
  void append(OutputEvent event) throws InterruptedException;

  /// Hands all that was appended to the operating system: it survives the daemon, not the host.
  void flush();

  /// Says that nothing will be appended any more: readers end, a waiting `append` fails with
  /// CANCELLED.
  void end();

  /// Wakes all readers once, with nothing new.
  void wake();

  /// @param afterSeq number of the last event the reader has; 0 for none
  Reader reader(long afterSeq);

  /// Reads on its own pace. Not for use by several threads at once.
  interface Reader extends AutoCloseable {

    /// The next events in order, at most about 64 KiB of them; waits for the first. Empty when
    /// there was none within `wait`, when the log was woken, or when it ended: then `finished`.
    List<OutputEvent> next(Duration wait) throws InterruptedException;

    /// Whether the log ended and all of it was read.
    boolean finished();

    @Override
    void close();
  }

  @Override
  void close();
}
