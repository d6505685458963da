package dev.space.core.guest;

/// What a guest says of its own use. Times in milliseconds since boot over all CPUs, sizes in
/// bytes.
public record GuestStats(
    int cpuCount,
    long cpuBusyMillis,
    long cpuTotalMillis,
    long memoryTotal,
    long memoryUsed,
    long memoryCache,
    long diskTotal,
    long diskUsed,
    int processCount) {}
