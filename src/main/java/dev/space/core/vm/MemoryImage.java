package dev.space.core.vm;

import java.nio.file.Path;
import java.util.Optional;

/// Saved memory and device state of a VM.
///
/// @param state device state, in the driver's own format
/// @param memory the whole memory as one file; mapped privately, so it must not change while a VM
///   that was restored from it lives
/// @param changes the pages that differ from `memory`, when only those were saved
public record MemoryImage(Path state, Path memory, Optional<Path> changes) {}
