package dev.space.core.guest;

import java.time.Instant;
import java.util.Map;
import java.util.Optional;

/// One file, directory or link in a guest. Everything is its own, as lstat(2) tells it, but
/// `target`.
///
/// @param path absolute
/// @param mode permission bits with setuid, setgid and sticky
/// @param owner name, or the uid as text
/// @param symlinkTarget as written in the link
/// @param target what a link leads to, when it leads anywhere
/// @param xattrs extended attributes below `user.`, without that prefix
public record FileEntry(
    String path,
    String name,
    Type type,
    long size,
    int mode,
    int uid,
    int gid,
    String owner,
    String group,
    Instant modifiedAt,
    Optional<String> symlinkTarget,
    Optional<Target> target,
    long inode,
    Map<String, byte[]> xattrs) {

  public enum Type {
    FILE,
    DIRECTORY,
    SYMLINK,
    FIFO,
    SOCKET,
    CHAR_DEVICE,
    BLOCK_DEVICE,
    UNKNOWN
  }

  /// What a link leads to after all links were followed.
  public record Target(String path, Type type, int mode) {}
}
