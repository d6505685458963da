package dev.space.core.vm;

/// Why a VM is gone.
///
/// @param detail for people: exit status, the last lines of the console, what the VMM said
public record VmExit(Kind kind, String detail) {

  public enum Kind {
    /// The host ended it.
    KILLED,
    /// The guest powered off or rebooted.
    STOPPED,
    /// The guest's kernel panicked.
    PANICKED,
    /// The VMM itself ended: crash, out of memory, killed by someone else.
    VMM_DIED
  }
}
