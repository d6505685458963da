package dev.space.core.vm;

/// Host side use of one VM process.
///
/// @param cpuMillis CPU time used since its start
/// @param residentBytes resident memory, shared pages included
/// @param privateBytes memory that is its alone
public record VmStats(long cpuMillis, long residentBytes, long privateBytes) {}
