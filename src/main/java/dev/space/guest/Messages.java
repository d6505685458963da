package dev.space.guest;

import com.google.protobuf.ByteString;
import dev.space.core.guest.FileEntry;
import dev.space.core.guest.Guest;
import dev.space.core.guest.GuestStats;
import dev.space.core.guest.OutputEvent;
import dev.space.core.guest.ProcessExit;
import dev.space.core.guest.ProcessInfo;
import dev.space.core.guest.ProcessSpec;
import dev.space.core.guest.WatchEvent;
import dev.space.core.guest.WriteFileSpec;
import dev.space.guest.proto.Entry;
import dev.space.guest.proto.EntryType;
import dev.space.guest.proto.Exit;
import dev.space.guest.proto.Process;
import dev.space.guest.proto.ProcessState;
import dev.space.guest.proto.PtySize;
import dev.space.guest.proto.SignalScope;
import dev.space.guest.proto.StartRequest;
import dev.space.guest.proto.StatsReply;
import dev.space.guest.proto.StdinMode;
import dev.space.guest.proto.WriteFileHeader;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.stream.Collectors;

/// Between the wire's messages and the domain's records.
final class Messages {

  private static final long NANOS_PER_SECOND = 1_000_000_000L;

  private Messages() {}

  static StartRequest start(ProcessSpec spec) {
    StartRequest.Builder request =
        StartRequest.newBuilder()
            .setId(spec.id())
            .addAllArgv(spec.argv())
            .putAllEnv(spec.env())
            .setCwd(spec.cwd().orElse(""))
            .setUser(spec.user().orElse(""))
            .setStdin(spec.stdin() ? StdinMode.STDIN_PIPE : StdinMode.STDIN_NONE)
            .setTimeoutMillis(spec.timeout().map(t -> Math.max(1, t.toMillis())).orElse(0L))
            .setTag(spec.tag())
            .setKillTreeAtExit(spec.killTreeAtExit());
    spec.pty().ifPresent(size -> request.setPty(pty(size)));
    return request.build();
  }

  static PtySize pty(ProcessSpec.PtySize size) {
    return PtySize.newBuilder().setCols(size.cols()).setRows(size.rows()).build();
  }

  static SignalScope scope(Guest.SignalScope scope) {
    return switch (scope) {
      case PROCESS -> SignalScope.SIGNAL_PROCESS;
      case TREE -> SignalScope.SIGNAL_TREE;
      case FOREGROUND -> SignalScope.SIGNAL_FOREGROUND;
    };
  }

  static ProcessInfo process(Process p, boolean existed) {
    return new ProcessInfo(
        p.getId(),
        p.getPid(),
        p.getState() == ProcessState.PROCESS_EXITED
            ? Optional.of(exit(p.getExit()))
            : Optional.empty(),
        List.copyOf(p.getArgvList()),
        Map.copyOf(p.getEnvMap()),
        p.getCwd(),
        p.getUser(),
        p.getTag(),
        p.getPty(),
        Instant.ofEpochMilli(p.getStartedUnixMillis()),
        unsigned(p.getLastSeq()),
        unsigned(p.getStdinOffset()),
        existed);
  }

  static ProcessExit exit(Exit exit) {
    return new ProcessExit(
        exit.getCode(), exit.getSignal(), exit.getCoreDumped(), exit.getTimedOut());
  }

  static OutputEvent output(dev.space.guest.proto.OutputEvent e) {
    long seq = e.getSeq();
    long at = e.getUnixMillis();
    return switch (e.getEventCase()) {
      case STARTED -> new OutputEvent.Started(seq, at, e.getStarted().getPid());
      case STDOUT -> bytes(seq, at, OutputEvent.Stream.STDOUT, e.getStdout());
      case STDERR -> bytes(seq, at, OutputEvent.Stream.STDERR, e.getStderr());
      case PTY -> bytes(seq, at, OutputEvent.Stream.PTY, e.getPty());
      case GAP ->
          new OutputEvent.Gap(seq, at, e.getGap().getFirstSeq(), unsigned(e.getGap().getBytes()));
      case EXIT -> new OutputEvent.Exited(seq, at, exit(e.getExit()));
      case EVENT_NOT_SET ->
          throw GuestErrors.broken("output event " + seq + " is of no known kind").toException();
    };
  }

  private static OutputEvent bytes(long seq, long at, OutputEvent.Stream stream, ByteString data) {
    return new OutputEvent.Bytes(seq, at, stream, data.toByteArray());
  }

  static FileEntry entry(Entry e) {
    return new FileEntry(
        e.getPath(),
        e.getName(),
        type(e.getType()),
        unsigned(e.getSize()),
        e.getMode(),
        e.getUid(),
        e.getGid(),
        e.getOwner(),
        e.getGroup(),
        Instant.ofEpochSecond(
            Math.floorDiv(e.getModifiedUnixNanos(), NANOS_PER_SECOND),
            Math.floorMod(e.getModifiedUnixNanos(), NANOS_PER_SECOND)),
        e.getType() == EntryType.ENTRY_SYMLINK
            ? Optional.of(e.getSymlinkTarget())
            : Optional.empty(),
        e.getResolvedPath().isEmpty()
            ? Optional.empty()
            : Optional.of(
                new FileEntry.Target(
                    e.getResolvedPath(), type(e.getTargetType()), e.getTargetMode())),
        e.getInode(),
        e.getXattrsMap().entrySet().stream()
            .collect(
                Collectors.toUnmodifiableMap(Map.Entry::getKey, x -> x.getValue().toByteArray())));
  }

  private static FileEntry.Type type(EntryType type) {
    return switch (type) {
      case ENTRY_FILE -> FileEntry.Type.FILE;
      case ENTRY_DIRECTORY -> FileEntry.Type.DIRECTORY;
      case ENTRY_SYMLINK -> FileEntry.Type.SYMLINK;
      case ENTRY_FIFO -> FileEntry.Type.FIFO;
      case ENTRY_SOCKET -> FileEntry.Type.SOCKET;
      case ENTRY_CHAR_DEVICE -> FileEntry.Type.CHAR_DEVICE;
      case ENTRY_BLOCK_DEVICE -> FileEntry.Type.BLOCK_DEVICE;
      case ENTRY_UNSPECIFIED, UNRECOGNIZED -> FileEntry.Type.UNKNOWN;
    };
  }

  static WriteFileHeader header(WriteFileSpec spec) {
    WriteFileHeader.Builder header =
        WriteFileHeader.newBuilder()
            .setPath(spec.path())
            .setUser(spec.user().orElse(""))
            .setMode(spec.mode().orElse(0))
            .setParents(spec.parents())
            .setAtomic(spec.atomic())
            .setOffset(spec.offset());
    spec.xattrs()
        .ifPresent(
            x -> {
              header.setReplaceXattrs(true).setXattrPrefix(x.prefix());
              x.values()
                  .forEach((name, value) -> header.putXattrs(name, ByteString.copyFrom(value)));
            });
    return header.build();
  }

  static WatchEvent watch(dev.space.guest.proto.WatchEvent e) {
    WatchEvent.Kind kind =
        switch (e.getKind()) {
          case ARMED -> WatchEvent.Kind.ARMED;
          case CREATE -> WatchEvent.Kind.CREATE;
          case WRITE -> WatchEvent.Kind.WRITE;
          case REMOVE -> WatchEvent.Kind.REMOVE;
          case RENAME -> WatchEvent.Kind.RENAME;
          case CHMOD -> WatchEvent.Kind.CHMOD;
          case OVERFLOW -> WatchEvent.Kind.OVERFLOW;
          case MARK -> WatchEvent.Kind.MARK;
          case UNRECOGNIZED ->
              throw GuestErrors.broken("watch event of no known kind").toException();
        };
    return new WatchEvent(
        kind,
        e.getName(),
        e.hasEntry() ? Optional.of(entry(e.getEntry())) : Optional.empty(),
        e.getUnixMillis(),
        e.getMark());
  }

  static GuestStats stats(StatsReply s) {
    return new GuestStats(
        s.getCpuCount(),
        unsigned(s.getCpuBusyMillis()),
        unsigned(s.getCpuTotalMillis()),
        unsigned(s.getMemoryTotal()),
        unsigned(s.getMemoryUsed()),
        unsigned(s.getMemoryCache()),
        unsigned(s.getDiskTotal()),
        unsigned(s.getDiskUsed()),
        s.getProcessCount());
  }

  /// An unsigned number of the wire as a signed one; what doesn't fit is no honest figure.
  private static long unsigned(long value) {
    return value < 0 ? Long.MAX_VALUE : value;
  }
}
