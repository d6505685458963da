package dev.space.image;

import java.nio.file.Path;

/// A guest kernel on this host's disk.
///
/// @param release such as `6.1.0-57-cloud-amd64`
/// @param image the bzImage
/// @param modules the directory that holds the release's `.ko` files and `modules.builtin`
/// @param sha256 of the bzImage, in lower-case hex
public record GuestKernel(String release, Path image, Path modules, String sha256) {}
