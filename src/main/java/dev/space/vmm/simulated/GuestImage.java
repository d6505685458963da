package dev.space.vmm.simulated;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.guest.OutputEvent;
import dev.space.core.guest.ProcessExit;
import dev.space.core.guest.ProcessSpec;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.SortedMap;
import java.util.SortedSet;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.zip.CRC32C;
import org.jspecify.annotations.Nullable;
import tools.jackson.core.JacksonException;
import tools.jackson.databind.json.JsonMapper;

/// The memory of a simulated guest as a value: what is in its files when it is saved.
record GuestImage(
    String bootId,
    String machineId,
    String hostname,
    SortedMap<String, String> env,
    Optional<String> defaultUser,
    Optional<String> defaultWorkdir,
    long generation,
    long random,
    long clockMillis,
    long upMillis,
    int nextPid,
    long nextInode,
    SortedMap<String, SavedFile> files,
    List<SavedProcess> processes) {

  record SavedFile(
      String type,
      int mode,
      int uid,
      int gid,
      long modifiedMillis,
      byte[] data,
      @Nullable String link,
      SortedMap<String, byte[]> xattrs,
      long inode) {

    @Override
    public boolean equals(@Nullable Object other) {
      return other instanceof SavedFile o
          && type.equals(o.type)
          && mode == o.mode
          && uid == o.uid
          && gid == o.gid
          && modifiedMillis == o.modifiedMillis
          && Arrays.equals(data, o.data)
          && Objects.equals(link, o.link)
          && xattrs.keySet().equals(o.xattrs.keySet())
          && xattrs.entrySet().stream()
              .allMatch(e -> Arrays.equals(e.getValue(), o.xattrs.get(e.getKey())))
          && inode == o.inode;
    }

    @Override
    public int hashCode() {
      return Objects.hash(type, mode, inode, data.length);
    }
  }

  /// @param events what the log still holds
  /// @param ends bytes of all output up to each event, from the first one on
  record SavedProcess(
      ProcessSpec spec,
      int pid,
      long startedMillis,
      Optional<ProcessExit> exit,
      List<SavedEvent> events,
      long firstSeq,
      long[] ends,
      byte[] stdin,
      long stdinOffset,
      boolean stdinClosed,
      long deadlineUp,
      SavedShell shell) {}

  /// One event; which fields count goes by `kind`.
  record SavedEvent(
      String kind,
      long seq,
      long at,
      OutputEvent.@Nullable Stream stream,
      byte @Nullable [] data,
      int pid,
      @Nullable ProcessExit exit) {}

  record SavedShell(
      String text,
      boolean literal,
      List<String> argv,
      boolean interactive,
      int index,
      long position,
      long wakeUp,
      int status,
      String cwd,
      SortedMap<String, String> env,
      SortedSet<Integer> ignored) {}

  /// What differs from another image: files one by one, the rest whole.
  record Changes(GuestImage rest, SortedMap<String, SavedFile> files, SortedSet<String> removed) {}

  private static final JsonMapper JSON = JsonMapper.builder().build();

  byte[] bytes() {
    return JSON.writeValueAsBytes(this);
  }

  /// A fingerprint of everything in it.
  String fingerprint() {
    return fingerprint(bytes());
  }

  static String fingerprint(byte[] bytes) {
    CRC32C crc = new CRC32C();
    crc.update(bytes);
    return HexFormat.of().toHexDigits(crc.getValue());
  }

  static GuestImage read(byte[] bytes) {
    return parse(bytes, GuestImage.class);
  }

  static <T> T parse(byte[] bytes, Class<T> type) {
    try {
      return JSON.readValue(bytes, type);
    } catch (JacksonException e) {
      throw Problem.of(ErrorCode.VMM_FAILED, "Saved state can't be read")
          .because(e.getOriginalMessage())
          .toException(e);
    }
  }

  static byte[] write(Object value) {
    return JSON.writeValueAsBytes(value);
  }

  Changes since(GuestImage base) {
    SortedMap<String, SavedFile> changed = new TreeMap<>();
    for (Map.Entry<String, SavedFile> entry : files.entrySet()) {
      if (!entry.getValue().equals(base.files.get(entry.getKey()))) {
        changed.put(entry.getKey(), entry.getValue());
      }
    }
    SortedSet<String> removed = new TreeSet<>(base.files.keySet());
    removed.removeAll(files.keySet());
    return new Changes(withFiles(new TreeMap<>()), changed, removed);
  }

  GuestImage with(Changes changes) {
    SortedMap<String, SavedFile> all = new TreeMap<>(files);
    all.keySet().removeAll(changes.removed());
    all.putAll(changes.files());
    return changes.rest().withFiles(all);
  }

  private GuestImage withFiles(SortedMap<String, SavedFile> other) {
    return new GuestImage(
        bootId,
        machineId,
        hostname,
        env,
        defaultUser,
        defaultWorkdir,
        generation,
        random,
        clockMillis,
        upMillis,
        nextPid,
        nextInode,
        other,
        processes);
  }
}
