package dev.space.core.guest;

import java.util.Map;
import java.util.Optional;

/// How a file is to be written.
///
/// @param user owner of a new file and of the parents that are made; empty means the default user
/// @param mode permission bits; empty keeps an existing file's, 0644 for a new one
/// @param atomic readers see the old or the new file, never a part
/// @param xattrs when present, replaces the attributes whose names start with its prefix
/// @param offset byte to start at in an existing file; 0 truncates
public record WriteFileSpec(
    String path,
    Optional<String> user,
    Optional<Integer> mode,
    boolean parents,
    boolean atomic,
    Optional<Xattrs> xattrs,
    long offset) {

  /// Attributes below `user.` + prefix, names without either.
  public record Xattrs(String prefix, Map<String, byte[]> values) {}
}
