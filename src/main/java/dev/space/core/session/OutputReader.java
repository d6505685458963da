package dev.space.core.session;

import dev.space.core.guest.OutputEvent;
import java.util.List;

/// Takes the output of a session. May block; that slows this reader down, and in the end the
/// process.
@FunctionalInterface
public interface OutputReader {

  /// The next events, in order and never none. What belongs together comes together, so that it can
  /// be sent with one flush.
  void accept(List<OutputEvent> burst);
}
