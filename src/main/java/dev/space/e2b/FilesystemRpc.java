package dev.space.e2b;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.error.SpaceException;
import dev.space.core.guest.FileEntry;
import dev.space.core.guest.Guest;
import dev.space.core.guest.Guest.WatchSpec;
import dev.space.core.guest.WatchEvent;
import dev.space.e2b.proto.filesystem.*;
import dev.space.e2b.proto.filesystem.WatchDirResponse.KeepAlive;
import dev.space.e2b.proto.filesystem.WatchDirResponse.StartEvent;
import java.util.Optional;
import java.util.function.Function;

/// `filesystem.Filesystem` over the guest's file calls.
final class FilesystemRpc {

  private static final int DEPTH_MAX = 1000;
  private static final int ENTRIES_MAX = 100_000;

  private final Watchers watchers;

  FilesystemRpc(Watchers watchers) {
    this.watchers = watchers;
  }

  StatResponse stat(EnvdCall call, StatRequest request) {
    FileEntry entry = with(call, guest -> guest.stat(request.getPath(), call.user()));
    return StatResponse.newBuilder().setEntry(Entries.info(entry)).build();
  }

  MakeDirResponse makeDir(EnvdCall call, MakeDirRequest request) {
    FileEntry entry =
        with(
            call,
            guest -> {
              Optional<FileEntry> there = find(guest, request.getPath(), call.user());
              if (there.isPresent()) {
                throw isDirectory(there.get())
                    ? new ConnectException(
                        ConnectCode.ALREADY_EXISTS,
                        "directory already exists: " + there.get().path())
                    : new ConnectException(
                        ConnectCode.INVALID_ARGUMENT,
                        "path already exists but it is not a directory: " + there.get().path());
              }
              try {
                return guest.makeDir(request.getPath(), call.user(), Optional.empty(), true);
              } catch (SpaceException e) {
                if (e.code() == ErrorCode.NOT_A_DIRECTORY) {
                  throw new ConnectException(ConnectCode.INTERNAL, e.problem().oneLine());
                }
                throw e;
              }
            });
    return MakeDirResponse.newBuilder().setEntry(Entries.info(entry)).build();
  }

  MoveResponse move(EnvdCall call, MoveRequest request) {
    FileEntry entry =
        with(
            call,
            guest -> {
              try {
                return guest.move(
                    request.getSource(), request.getDestination(), call.user(), true, true);
              } catch (SpaceException e) {
                if (e.code() == ErrorCode.FILE_NOT_FOUND) {
                  throw e;
                }
                throw new ConnectException(ConnectCode.INTERNAL, e.problem().oneLine());
              }
            });
    return MoveResponse.newBuilder().setEntry(Entries.info(entry)).build();
  }

  ListDirResponse listDir(EnvdCall call, ListDirRequest request) {
    int depth = Math.clamp(Integer.toUnsignedLong(request.getDepth()), 1, DEPTH_MAX);
    ListDirResponse.Builder answer = ListDirResponse.newBuilder();
    with(
        call,
        guest -> {
          guest.listDir(
              request.getPath(),
              call.user(),
              depth,
              true,
              entry -> {
                if (answer.getEntriesCount() >= ENTRIES_MAX) {
                  throw Problem.of(
                          ErrorCode.BODY_TOO_LARGE,
                          "The directory holds more than " + ENTRIES_MAX + " entries")
                      .remedy("List it with a smaller depth.")
                      .toException();
                }
                answer.addEntries(Entries.info(entry));
              });
          return answer;
        });
    return answer.build();
  }

  RemoveResponse remove(EnvdCall call, RemoveRequest request) {
    with(call, guest -> guest.remove(request.getPath(), call.user(), true));
    return RemoveResponse.getDefaultInstance();
  }

  void watchDir(EnvdCall call, WatchDirRequest request, EnvelopeWriter out)
      throws InterruptedException {
    WatchSpec spec =
        new WatchSpec(
            request.getPath(),
            call.user(),
            request.getRecursive(),
            request.getIncludeEntry(),
            request.getAllowNetworkMounts());
    out.keepAlive(
        call.keepAlive(),
        WatchDirResponse.newBuilder().setKeepalive(KeepAlive.newBuilder()).build());
    Deadline.run(
        call.timeout(),
        () ->
            with(
                call,
                guest -> {
                  guest.watch(spec, event -> forward(event, out));
                  return out;
                }));
  }

  private static void forward(WatchEvent event, EnvelopeWriter out) {
    if (event.kind() == WatchEvent.Kind.ARMED) {
      out.message(WatchDirResponse.newBuilder().setStart(StartEvent.newBuilder()).build());
      return;
    }
    Watchers.toE2b(event)
        .ifPresent(e -> out.message(WatchDirResponse.newBuilder().setFilesystem(e).build()));
  }

  CreateWatcherResponse createWatcher(EnvdCall call, CreateWatcherRequest request) {
    WatchSpec spec =
        new WatchSpec(
            request.getPath(),
            call.user(),
            request.getRecursive(),
            request.getIncludeEntry(),
            request.getAllowNetworkMounts());
    return CreateWatcherResponse.newBuilder().setWatcherId(watchers.create(call, spec)).build();
  }

  GetWatcherEventsResponse watcherEvents(EnvdCall call, GetWatcherEventsRequest request)
      throws InterruptedException {
    return GetWatcherEventsResponse.newBuilder()
        .addAllEvents(watchers.drain(call, request.getWatcherId()))
        .build();
  }

  RemoveWatcherResponse removeWatcher(EnvdCall call, RemoveWatcherRequest request) {
    watchers.remove(call, request.getWatcherId());
    return RemoveWatcherResponse.getDefaultInstance();
  }

  static boolean isDirectory(FileEntry entry) {
    return entry.type() == FileEntry.Type.DIRECTORY
        || entry.target().filter(t -> t.type() == FileEntry.Type.DIRECTORY).isPresent();
  }

  static Optional<FileEntry> find(Guest guest, String path, Optional<String> user) {
    try {
      return Optional.of(guest.stat(path, user));
    } catch (SpaceException e) {
      if (e.code() == ErrorCode.FILE_NOT_FOUND || e.code() == ErrorCode.NOT_A_DIRECTORY) {
        return Optional.empty();
      }
      throw e;
    }
  }

  private static <T> T with(EnvdCall call, Function<Guest, T> work) {
    try (var use = call.use()) {
      return work.apply(use.guest());
    } catch (SpaceException e) {
      if (e.code() == ErrorCode.USER_NOT_FOUND) {
        throw new ConnectException(
            ConnectCode.UNAUTHENTICATED, "invalid username: '" + call.user().orElse("") + "'");
      }
      throw e;
    }
  }
}
