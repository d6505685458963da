package dev.space.core.sandbox;

import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CopyOnWriteArrayList;

/// What outlives a daemon on a machine: VMs, saved states, disks and snapshots.
final class FakeHost {

  enum VmState {
    RUNNING,
    PAUSED
  }

  final Object lock = new Object();
  final Map<String, VmState> vms = new HashMap<>();
  final Set<String> saved = new HashSet<>();

  /// Sandboxes that hold anything at all, a half-made disk too.
  final Set<String> held = new HashSet<>();

  final Set<String> snapshots = new HashSet<>();

  /// Which snapshot a sandbox maps.
  final Map<String, String> maps = new HashMap<>();

  /// Broken promises of the caller, such as two calls for one sandbox at once.
  final List<String> violations = new CopyOnWriteArrayList<>();

  void clear(String id) {
    vms.remove(id);
    saved.remove(id);
    held.remove(id);
    maps.remove(id);
  }
}
