package dev.space.vmm.firecracker;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.locks.LockSupport;

/// Notices guests that powered off or halted: Firecracker has no power-off, so their process goes
/// on with nothing in it. The last thing such a kernel does is to say so on its console, whatever
/// its level of messages is.
final class Halts {

  private static final long LOOK_NANOS = 500_000_000;

  private final Map<FirecrackerVm, Seen> guests = new ConcurrentHashMap<>();
  private boolean watching;

  /// @param size of the console when it was last read
  private record Seen(Path console, long size) {}

  void add(FirecrackerVm vm, Path console) {
    guests.put(vm, new Seen(console, 0));
    watch();
  }

  void remove(FirecrackerVm vm) {
    guests.remove(vm);
  }

  /// One thread for all guests, only while there are any.
  private synchronized void watch() {
    if (!watching) {
      watching = true;
      Thread.ofVirtual().name("vm-halts").start(this::run);
    }
  }

  private synchronized boolean idle() {
    watching = !guests.isEmpty();
    return !watching;
  }

  private void run() {
    while (!idle()) {
      LockSupport.parkNanos(LOOK_NANOS);
      guests.forEach(this::look);
    }
  }

  private void look(FirecrackerVm vm, Seen seen) {
    try {
      long size = Files.size(seen.console());
      if (size == seen.size()) {
        return;
      }
      guests.replace(vm, seen, new Seen(seen.console(), size));
      if (halted(vm.consoleTail())) {
        Thread.ofVirtual().name("vm-halted").start(vm::halted);
      }
    } catch (IOException _) {
      // It is gone with its VM.
    }
  }

  /// The words of Linux's kernel/reboot.c.
  static boolean halted(String console) {
    return console.contains("reboot: Power down") || console.contains("reboot: System halted");
  }
}
