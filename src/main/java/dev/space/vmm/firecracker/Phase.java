package dev.space.vmm.firecracker;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;

/// Where one Firecracker process is. What it takes depends on that, and so asking for anything else
/// is a mistake of this driver's, found before it is sent.
sealed interface Phase {

  /// It answers, and nothing was asked of it yet.
  record Fresh() implements Phase {}

  /// Parts of a machine were described; only a boot can follow.
  record Described() implements Phase {}

  /// Its guest runs.
  record Running() implements Phase {}

  /// Its guest stands still.
  record Paused() implements Phase {}

  /// It is gone. Nothing leads out of here.
  record Dead() implements Phase {}

  Phase FRESH = new Fresh();
  Phase DESCRIBED = new Described();
  Phase RUNNING = new Running();
  Phase PAUSED = new Paused();
  Phase DEAD = new Dead();

  /// What can be asked of a process.
  enum Call {
    /// Logger, metrics and serial: they belong to the process, not to the machine.
    OBSERVE,
    /// Kernel, shape and devices of a machine that is to be booted.
    DESCRIBE,
    BOOT,
    LOAD,
    PAUSE,
    RESUME,
    /// Changes of a machine that exists.
    ADJUST,
    SAVE,
    READ
  }

  /// Where a call that succeeds leads to.
  ///
  /// @throws dev.space.core.error.SpaceException VMM_FAILED when the process is gone, INTERNAL when
  ///   it would refuse the call
  default Phase after(Call call) {
    return switch (this) {
      case Fresh _ ->
          switch (call) {
            case OBSERVE, READ -> this;
            case DESCRIBE -> DESCRIBED;
            case LOAD -> PAUSED;
            case BOOT, PAUSE, RESUME, ADJUST, SAVE -> throw refused(call);
          };
      case Described _ ->
          switch (call) {
            case OBSERVE, DESCRIBE, READ -> this;
            case BOOT -> RUNNING;
            case LOAD, PAUSE, RESUME, ADJUST, SAVE -> throw refused(call);
          };
      case Running _ ->
          switch (call) {
            case RESUME, ADJUST, READ -> this;
            case PAUSE -> PAUSED;
            case OBSERVE, DESCRIBE, BOOT, LOAD, SAVE -> throw refused(call);
          };
      case Paused _ ->
          switch (call) {
            case PAUSE, ADJUST, SAVE, READ -> this;
            case RESUME -> RUNNING;
            case OBSERVE, DESCRIBE, BOOT, LOAD -> throw refused(call);
          };
      case Dead _ ->
          throw Problem.of(ErrorCode.VMM_FAILED, "The VM is gone.")
              .because("its Firecracker process ended")
              .toException();
    };
  }

  private RuntimeException refused(Call call) {
    return Problem.of(
            call == Call.SAVE ? ErrorCode.VMM_FAILED : ErrorCode.INTERNAL,
            "A Firecracker process was asked to " + call + " while it is " + this)
        .toException();
  }
}
