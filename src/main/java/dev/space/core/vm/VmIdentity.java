package dev.space.core.vm;

/// Tells a VM process from any other, across restarts of the daemon and reuse of pids.
///
/// @param startTicks field 22 of /proc/PID/stat: start time in clock ticks since the host's boot
public record VmIdentity(long pid, long startTicks) {}
