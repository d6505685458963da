package dev.space.vmm.simulated;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.error.SpaceException;
import dev.space.core.guest.FileEntry;
import dev.space.core.guest.FileEntry.Type;
import dev.space.core.guest.WatchEvent;
import dev.space.core.guest.WriteFileSpec;
import dev.space.vmm.simulated.GuestImage.SavedFile;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.function.LongSupplier;

/// The files of a simulated guest, by absolute path, in memory.
final class SimulatedFiles {

  /// All files of one guest together.
  static final long BYTES_MAX = 256L << 20;

  private static final int LINKS_MAX = 16;

  /// Told of every change.
  interface Watcher {
    void changed(String path, WatchEvent.Kind kind);
  }

  private final LongSupplier clockMillis;
  private final TreeMap<String, SavedFile> files = new TreeMap<>();
  private final List<Watcher> watchers = new CopyOnWriteArrayList<>();
  private long nextInode;
  private long bytes;

  SimulatedFiles(LongSupplier clockMillis) {
    this.clockMillis = clockMillis;
    this.nextInode = 2;
    for (String dir :
        List.of(
            "/", "/bin", "/dev", "/dev/shm", "/etc", "/home", "/proc", "/root", "/tmp", "/var")) {
      put(dir, directory(0755, 0));
    }
    put("/home/user", directory(0755, 1000));
    put("/etc/hostname", file(new byte[0], 0644, 0));
  }

  SimulatedFiles(LongSupplier clockMillis, SortedMap<String, SavedFile> saved, long nextInode) {
    this.clockMillis = clockMillis;
    this.nextInode = nextInode;
    saved.forEach(this::put);
  }

  /// Starts with these files instead of those of a new disk.
  synchronized void replace(SortedMap<String, SavedFile> saved, long inode) {
    files.clear();
    bytes = 0;
    nextInode = inode;
    saved.forEach(this::put);
  }

  synchronized SortedMap<String, SavedFile> save() {
    return new TreeMap<>(files);
  }

  synchronized long nextInode() {
    return nextInode;
  }

  synchronized long bytes() {
    return bytes;
  }

  void watch(Watcher watcher) {
    watchers.add(watcher);
  }

  void unwatch(Watcher watcher) {
    watchers.remove(watcher);
  }

  /// An absolute path without `.`, `..` and double slashes.
  static String absolute(String path, String home) {
    String full =
        path.equals("~")
            ? home
            : path.startsWith("~/")
                ? home + path.substring(1)
                : path.startsWith("/") ? path : home + "/" + path;
    List<String> parts = new ArrayList<>();
    for (String part : full.split("/")) {
      if (part.equals("..")) {
        if (!parts.isEmpty()) {
          parts.removeLast();
        }
      } else if (!part.isEmpty() && !part.equals(".")) {
        parts.add(part);
      }
    }
    return "/" + String.join("/", parts);
  }

  synchronized boolean isDirectory(String path) {
    return find(path).map(f -> f.type().equals("DIRECTORY")).orElse(false);
  }

  synchronized FileEntry stat(String path) {
    return entry(path, get(path));
  }

  synchronized Optional<FileEntry> statIfThere(String path) {
    return Optional.ofNullable(files.get(path)).map(f -> entry(path, f));
  }

  synchronized List<FileEntry> list(String path, int depth) {
    String dir = follow(path);
    if (!get(dir).type().equals("DIRECTORY")) {
      throw failure(ErrorCode.NOT_A_DIRECTORY, path + " is not a directory");
    }
    List<FileEntry> out = new ArrayList<>();
    walk(dir, Math.max(1, depth), out);
    return out;
  }

  private void walk(String dir, int depth, List<FileEntry> out) {
    for (String child : children(dir)) {
      SavedFile file = get(child);
      out.add(entry(child, file));
      if (depth > 1 && file.type().equals("DIRECTORY")) {
        walk(child, depth - 1, out);
      }
    }
  }

  private List<String> children(String dir) {
    String prefix = dir.equals("/") ? "/" : dir + "/";
    List<String> out = new ArrayList<>();
    for (String path : files.tailMap(prefix, false).keySet()) {
      if (!path.startsWith(prefix)) {
        break;
      }
      if (path.indexOf('/', prefix.length()) < 0) {
        out.add(path);
      }
    }
    return out;
  }

  FileEntry makeDir(String path, int mode, boolean parents, int uid) {
    synchronized (this) {
      if (files.containsKey(path)) {
        if (parents && isDirectory(path)) {
          return stat(path);
        }
        throw failure(ErrorCode.ALREADY_EXISTS, path + " exists");
      }
      requireParent(path, parents, uid);
      put(path, directory(mode, uid));
    }
    tell(path, WatchEvent.Kind.CREATE);
    return stat(path);
  }

  FileEntry move(String from, String to, boolean parents, boolean overwrite) {
    synchronized (this) {
      SavedFile file = get(from);
      if (files.containsKey(to) && !overwrite) {
        throw failure(ErrorCode.ALREADY_EXISTS, to + " exists");
      }
      if (to.startsWith(from + "/")) {
        throw failure(ErrorCode.INVALID_REQUEST, "Can't move " + from + " below itself");
      }
      requireParent(to, parents, file.uid());
      take(to);
      TreeMap<String, SavedFile> below = new TreeMap<>(files.subMap(from + "/", from + "0"));
      take(from);
      put(to, file);
      below.forEach(
          (path, child) -> {
            take(path);
            put(to + path.substring(from.length()), child);
          });
    }
    tell(from, WatchEvent.Kind.RENAME);
    tell(to, WatchEvent.Kind.CREATE);
    return stat(to);
  }

  long remove(String path, boolean recursive) {
    long removed = 0;
    synchronized (this) {
      if (!files.containsKey(path)) {
        return 0;
      }
      List<String> below = List.copyOf(files.subMap(path + "/", path + "0").keySet());
      if (!below.isEmpty() && !recursive) {
        throw failure(ErrorCode.CONFLICT, path + " is a directory that is not empty");
      }
      for (String child : below) {
        take(child);
        removed++;
      }
      take(path);
      removed++;
    }
    tell(path, WatchEvent.Kind.REMOVE);
    return removed;
  }

  synchronized byte[] read(String path) {
    String real = follow(path);
    SavedFile file = get(real);
    if (!file.type().equals("FILE")) {
      throw failure(ErrorCode.NOT_A_FILE, path + " is not a file");
    }
    return file.data();
  }

  synchronized FileEntry real(String path) {
    String real = follow(path);
    return entry(real, get(real));
  }

  FileEntry write(WriteFileSpec spec, String path, byte[] data, int uid) {
    boolean isNew;
    synchronized (this) {
      Optional<SavedFile> old = find(path);
      isNew = old.isEmpty();
      if (old.isPresent() && !old.get().type().equals("FILE")) {
        throw failure(ErrorCode.NOT_A_FILE, path + " is not a file");
      }
      requireParent(path, spec.parents(), uid);
      byte[] before = old.map(SavedFile::data).orElse(new byte[0]);
      if (spec.offset() > before.length) {
        throw failure(ErrorCode.OFFSET_MISMATCH, path + " has " + before.length + " bytes");
      }
      byte[] whole = Arrays.copyOf(before, (int) spec.offset() + data.length);
      System.arraycopy(data, 0, whole, (int) spec.offset(), data.length);
      requireRoom(whole.length - before.length);
      TreeMap<String, byte[]> xattrs =
          new TreeMap<>(old.map(SavedFile::xattrs).orElse(new TreeMap<>()));
      spec.xattrs()
          .ifPresent(
              x -> {
                xattrs.keySet().removeIf(name -> name.startsWith(x.prefix()));
                x.values().forEach((name, value) -> xattrs.put(x.prefix() + name, value));
              });
      put(
          old.isPresent() ? follow(path) : path,
          new SavedFile(
              "FILE",
              spec.mode().orElse(old.map(SavedFile::mode).orElse(0644)),
              old.map(SavedFile::uid).orElse(uid),
              old.map(SavedFile::gid).orElse(uid),
              clockMillis.getAsLong(),
              whole,
              null,
              xattrs,
              old.map(SavedFile::inode).orElse(nextInode++)));
    }
    tell(path, isNew ? WatchEvent.Kind.CREATE : WatchEvent.Kind.WRITE);
    if (isNew && data.length > 0) {
      tell(path, WatchEvent.Kind.WRITE);
    }
    return stat(path);
  }

  void append(String path, byte[] data, boolean truncate, int uid) {
    long offset = truncate ? 0 : statIfThere(path).map(FileEntry::size).orElse(0L);
    write(
        new WriteFileSpec(
            path, Optional.empty(), Optional.empty(), false, false, Optional.empty(), offset),
        path,
        data,
        uid);
  }

  synchronized void link(String path, String target, int uid) {
    requireParent(path, true, uid);
    put(
        path,
        new SavedFile(
            "SYMLINK",
            0777,
            uid,
            uid,
            clockMillis.getAsLong(),
            new byte[0],
            target,
            new TreeMap<>(),
            nextInode++));
  }

  private void requireParent(String path, boolean make, int uid) {
    if (path.equals("/")) {
      return;
    }
    String parent = path.lastIndexOf('/') == 0 ? "/" : path.substring(0, path.lastIndexOf('/'));
    Optional<SavedFile> there = find(parent);
    if (there.isEmpty()) {
      if (!make) {
        throw failure(ErrorCode.FILE_NOT_FOUND, parent + " doesn't exist");
      }
      requireParent(parent, true, uid);
      put(parent, directory(0755, uid));
    } else if (!there.get().type().equals("DIRECTORY")) {
      throw failure(ErrorCode.NOT_A_DIRECTORY, parent + " is not a directory");
    }
  }

  private void requireRoom(long more) {
    if (bytes + more > BYTES_MAX) {
      throw failure(
          ErrorCode.GUEST_DISK_FULL,
          "The sandbox's disk is full: " + bytes + " of " + BYTES_MAX + " bytes are used");
    }
  }

  private Optional<SavedFile> find(String path) {
    try {
      return Optional.ofNullable(files.get(follow(path)));
    } catch (SpaceException _) {
      return Optional.empty();
    }
  }

  private SavedFile get(String path) {
    SavedFile file = files.get(path);
    if (file == null) {
      throw failure(ErrorCode.FILE_NOT_FOUND, path + " doesn't exist");
    }
    return file;
  }

  private String follow(String path) {
    String at = path;
    for (int hops = 0; hops < LINKS_MAX; hops++) {
      SavedFile file = files.get(at);
      if (file == null || file.link() == null) {
        return at;
      }
      String parent = at.lastIndexOf('/') <= 0 ? "/" : at.substring(0, at.lastIndexOf('/'));
      at = absolute(file.link(), parent);
    }
    throw failure(ErrorCode.INVALID_REQUEST, path + " goes through too many links");
  }

  private void put(String path, SavedFile file) {
    SavedFile old = files.put(path, file);
    bytes += file.data().length - (old == null ? 0 : old.data().length);
  }

  private void take(String path) {
    SavedFile old = files.remove(path);
    bytes -= old == null ? 0 : old.data().length;
  }

  private SavedFile directory(int mode, int uid) {
    return new SavedFile(
        "DIRECTORY",
        mode,
        uid,
        uid,
        clockMillis.getAsLong(),
        new byte[0],
        null,
        new TreeMap<>(),
        nextInode++);
  }

  private SavedFile file(byte[] data, int mode, int uid) {
    return new SavedFile(
        "FILE", mode, uid, uid, clockMillis.getAsLong(), data, null, new TreeMap<>(), nextInode++);
  }

  private FileEntry entry(String path, SavedFile file) {
    Optional<FileEntry.Target> target = Optional.empty();
    if (file.link() != null) {
      String real = follow(path);
      SavedFile to = files.get(real);
      if (to != null) {
        target = Optional.of(new FileEntry.Target(real, Type.valueOf(to.type()), to.mode()));
      }
    }
    return new FileEntry(
        path,
        path.equals("/") ? "/" : path.substring(path.lastIndexOf('/') + 1),
        Type.valueOf(file.type()),
        file.link() == null ? file.data().length : file.link().length(),
        file.mode(),
        file.uid(),
        file.gid(),
        name(file.uid()),
        name(file.gid()),
        Instant.ofEpochMilli(file.modifiedMillis()),
        Optional.ofNullable(file.link()),
        target,
        file.inode(),
        Map.copyOf(file.xattrs()));
  }

  private static String name(int uid) {
    return uid == 0 ? "root" : uid == 1000 ? "user" : Integer.toString(uid);
  }

  private void tell(String path, WatchEvent.Kind kind) {
    for (Watcher watcher : watchers) {
      watcher.changed(path, kind);
    }
  }

  static SpaceException failure(ErrorCode code, String detail) {
    return Problem.of(code, detail).toException();
  }
}
