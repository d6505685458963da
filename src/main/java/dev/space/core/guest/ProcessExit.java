package dev.space.core.guest;

/// How a process ended, as wait(2) told it.
///
/// @param code exit code, -1 when a signal ended it
/// @param signal number of that signal, 0 for none
/// @param timedOut whether the kill was the timeout's
public record ProcessExit(int code, int signal, boolean coreDumped, boolean timedOut) {}
