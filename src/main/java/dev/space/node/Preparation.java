package dev.space.node;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.guest.Guest;
import dev.space.core.guest.ProcessExit;
import dev.space.core.guest.ProcessSpec;
import dev.space.core.node.NodeRuntime.Progress;
import dev.space.core.template.Template;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.locks.LockSupport;

/// What is done once in a guest that was just booted: the template's start command is started and
/// waited for by its ready command, and a first command run, so that whatever every first command
/// needs is in the guest's memory.
///
/// @param deadline how long it may take to get ready
record Preparation(Guest guest, Template.Defaults defaults, Duration deadline) {

  private static final Duration READY_POLL = Duration.ofMillis(50);
  private static final String START_ID = "template-start";

  /// @throws dev.space.core.error.SpaceException TEMPLATE_BUILD_FAILED when it doesn't get ready
  void run(Progress progress) {
    long end = System.nanoTime() + deadline.toNanos();
    if (defaults.start().isPresent()) {
      progress.report("running the start command");
      guest.start(
          new ProcessSpec(
              START_ID,
              defaults.start().get(),
              Map.of(),
              Optional.empty(),
              Optional.empty(),
              false,
              Optional.empty(),
              Optional.empty(),
              START_ID,
              false));
    }
    if (defaults.ready().isPresent()) {
      progress.report("waiting until it is ready");
      awaitReady(List.of("/bin/sh", "-c", defaults.ready().get()), end);
    }
    Warmth.acquaint(guest);
  }

  private void awaitReady(List<String> argv, long end) {
    for (int attempt = 0; Warmth.run(guest, "ready-" + attempt, argv) != 0; attempt++) {
      Optional<ProcessExit> died = startFailed();
      if (died.isPresent()) {
        throw Problem.of(ErrorCode.TEMPLATE_BUILD_FAILED, "The template's start command ended")
            .because("with status " + died.get().code() + " before it was ready")
            .toException();
      }
      if (System.nanoTime() > end) {
        throw Problem.of(ErrorCode.TEMPLATE_BUILD_FAILED, "The template did not get ready")
            .because("its ready command still fails after " + deadline)
            .toException();
      }
      LockSupport.parkNanos(READY_POLL.toNanos());
    }
  }

  private Optional<ProcessExit> startFailed() {
    return defaults.start().isEmpty()
        ? Optional.empty()
        : guest.processes().stream()
            .filter(process -> process.id().equals(START_ID))
            .findFirst()
            .flatMap(process -> process.exit())
            .filter(exit -> exit.code() != 0);
  }
}
