package dev.space.image;

import java.nio.file.Path;

/// What a guest is booted with.
///
/// @param kernel the guest kernel as a bzImage
/// @param initramfs the agent as `/init` with the modules it needs
/// @param release the kernel's release, such as `6.1.0-57-cloud-amd64`
public record BootFiles(Path kernel, Path initramfs, String release) {}
