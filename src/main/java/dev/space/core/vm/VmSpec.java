package dev.space.core.vm;

import dev.space.core.template.Resources;
import java.nio.file.Path;

/// What a VM is made of. A restored VM has the same shape as the one its snapshot was taken of.
///
/// @param directory the VM's own directory, its working directory; every path that its state
///   remembers is relative to it
/// @param rootImage the template's read-only file system, `vda`
/// @param disk the VM's own writable image inside the directory, `vdb`
public record VmSpec(String id, Path directory, Resources resources, Path rootImage, Path disk) {}
