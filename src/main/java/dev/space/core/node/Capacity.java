package dev.space.core.node;

/// What a node has and what of it is promised to sandboxes.
public record Capacity(
    int vmsMax,
    int vms,
    long memoryBytes,
    long memoryPromisedBytes,
    long diskBytes,
    long diskFreeBytes,
    int warm) {}
