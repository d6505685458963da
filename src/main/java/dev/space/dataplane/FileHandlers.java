package dev.space.dataplane;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.error.SpaceException;
import dev.space.core.guest.FileEntry;
import dev.space.core.guest.Guest;
import dev.space.core.guest.WriteFileSpec;
import dev.space.http.EventStream;
import dev.space.http.Exchange;
import dev.space.http.Json;
import dev.space.http.Query;
import dev.space.http.Router;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.concurrent.atomic.AtomicReference;

/// Files of a sandbox: `/v1/sandboxes/{id}/files…`. Bodies stream both ways through 64 KiB.
final class FileHandlers {

  private static final String PATH = "/v1/sandboxes/{id}/files";
  private static final int BODY_BYTES_MAX = 64 * 1024;
  private static final int DEPTH_MAX = 64;
  private static final String BYTES = "application/octet-stream";
  private static final String TAR = "application/x-tar";

  private final Doors doors;

  FileHandlers(Doors doors) {
    this.doors = doors;
  }

  void addTo(Router.Builder routes) {
    routes
        .get(PATH, doors.onGuest(this::read))
        .put(PATH, doors.onGuest(this::write))
        .delete(PATH, doors.onGuest(this::remove))
        .get(PATH + "/stat", doors.onGuest(this::stat))
        .get(PATH + "/list", doors.onGuest(this::list))
        .post(PATH + "/mkdir", doors.onGuest(this::makeDir))
        .post(PATH + "/move", doors.onGuest(this::move))
        .get(PATH + "/watch", doors.onGuest(this::watch))
        .get(PATH + "/tree", doors.onGuest(this::readTree))
        .put(PATH + "/tree", doors.onGuest(this::writeTree));
  }

  private static Optional<String> user(Query query) {
    return query.one("user").filter(user -> !user.isEmpty());
  }

  // -- reading

  private void read(Exchange exchange, Guest guest) throws IOException {
    var query = exchange.query().allow("path", "user");
    String path = query.required("path");
    try (var reading = guest.readFile(path, user(query), 0, Optional.empty())) {
      FileEntry file = reading.entry();
      String tag = tag(file);
      exchange.header("ETag", tag).header("Cache-Control", "no-cache");
      if (exchange.header("If-None-Match").filter(known -> matches(known, tag)).isPresent()) {
        exchange.status(304).sendEmpty();
        return;
      }
      exchange.header("Content-Disposition", disposition(file.name()));
      if (sized(file)) {
        exchange.header("Accept-Ranges", "bytes");
      }
      Optional<ByteRange> range = range(exchange, file, tag);
      if (range.isEmpty()) {
        answer(
            exchange,
            reading.body(),
            sized(file) ? OptionalLong.of(file.size()) : OptionalLong.empty());
        return;
      }
      ByteRange part = range.get();
      exchange
          .status(206)
          .header("Content-Range", "bytes " + part.first() + "-" + part.last() + "/" + file.size());
      try (var partial =
          guest.readFile(path, user(query), part.first(), Optional.of(part.length()))) {
        answer(exchange, partial.body(), OptionalLong.of(part.length()));
      }
    }
  }

  /// Files of /proc and /sys have a size that says nothing: they are read to their true end.
  private static boolean sized(FileEntry file) {
    return file.size() > 0 && !file.path().startsWith("/proc/") && !file.path().startsWith("/sys/");
  }

  private static Optional<ByteRange> range(Exchange exchange, FileEntry file, String tag) {
    if (!sized(file)
        || exchange.header("If-Range").filter(known -> !known.equals(tag)).isPresent()) {
      return Optional.empty();
    }
    Optional<String> header = exchange.header("Range");
    if (header.isPresent()) {
      exchange.errorHeader("Content-Range", "bytes */" + file.size());
    }
    return header.flatMap(value -> ByteRange.parse(value, file.size()));
  }

  private static void answer(Exchange exchange, InputStream from, OptionalLong length)
      throws IOException {
    if (exchange.method().equals("HEAD")) {
      if (length.isPresent()) {
        exchange.header("Content-Length", Long.toString(length.getAsLong()));
      }
      exchange.header("Content-Type", BYTES).sendEmpty();
      return;
    }
    if (length.isEmpty()) {
      Bodies.copy(from, exchange.stream(BYTES));
      return;
    }
    long sent = Bodies.copy(from, exchange.stream(BYTES, length.getAsLong()), length.getAsLong());
    if (sent < length.getAsLong()) {
      // The length is promised already: cut, so that nobody takes the part for the whole.
      exchange.abort();
    }
  }

  private static String tag(FileEntry file) {
    return "\"%x-%x-%x\""
        .formatted(
            file.inode(),
            file.modifiedAt().getEpochSecond() * 1_000_000_000 + file.modifiedAt().getNano(),
            file.size());
  }

  private static boolean matches(String known, String tag) {
    for (String one : known.split(",")) {
      String bare = one.strip();
      if (bare.equals("*") || (bare.startsWith("W/") ? bare.substring(2) : bare).equals(tag)) {
        return true;
      }
    }
    return false;
  }

  private static String disposition(String name) {
    return "attachment; filename*=UTF-8''"
        + URLEncoder.encode(name, StandardCharsets.UTF_8).replace("+", "%20").replace("*", "%2A");
  }

  private void stat(Exchange exchange, Guest guest) {
    var query = exchange.query().allow("path", "user");
    Json.send(exchange, 200, FileJson.of(guest.stat(query.required("path"), user(query))));
  }

  private void list(Exchange exchange, Guest guest) throws IOException {
    var query = exchange.query().allow("path", "user", "depth");
    int depth = (int) query.integer("depth", 1, 1, DEPTH_MAX);
    var out = new EntryList(exchange);
    guest.listDir(query.required("path"), user(query), depth, false, out::add);
    out.end();
  }

  // -- writing

  private void write(Exchange exchange, Guest guest) throws IOException {
    var query = exchange.query().allow("path", "user", "mode", "parents", "atomic", "offset");
    long offset = query.integer("offset", 0, 0, Long.MAX_VALUE / 2);
    boolean atomic = query.flag("atomic", offset == 0);
    if (atomic && offset > 0) {
      throw Problem.of(ErrorCode.INVALID_REQUEST, "A part of a file can't be written atomically.")
          .remedy("Leave out atomic or offset.")
          .toException();
    }
    var spec =
        new WriteFileSpec(
            query.required("path"),
            user(query),
            query.one("mode").map(FileJson::mode),
            query.flag("parents", true),
            atomic,
            Optional.empty(),
            offset);
    Json.send(exchange, 200, FileJson.of(guest.writeFile(spec, exchange.body())));
  }

  private void remove(Exchange exchange, Guest guest) {
    var query = exchange.query().allow("path", "user", "recursive");
    String path = query.required("path");
    long removed = guest.remove(path, user(query), query.flag("recursive", false));
    if (removed == 0) {
      throw Problem.of(ErrorCode.FILE_NOT_FOUND, "There is nothing at this path.").toException();
    }
    Json.send(exchange, 200, Map.of("removed", removed));
  }

  record MakeDirRequest(
      String path, Optional<String> user, Optional<String> mode, Optional<Boolean> parents) {}

  private void makeDir(Exchange exchange, Guest guest) {
    exchange.query().allow();
    var request = Json.read(exchange, MakeDirRequest.class, BODY_BYTES_MAX);
    boolean parents = request.parents().orElse(true);
    try {
      FileEntry made =
          guest.makeDir(
              request.path(), request.user(), request.mode().map(FileJson::mode), parents);
      Json.send(exchange, 201, FileJson.of(made));
    } catch (SpaceException e) {
      if (e.code() != ErrorCode.ALREADY_EXISTS || !parents) {
        throw e;
      }
      // As mkdir -p has it: a folder that is there is no error.
      FileEntry there = guest.stat(request.path(), request.user());
      boolean folder =
          there.target().map(FileEntry.Target::type).orElse(there.type())
              == FileEntry.Type.DIRECTORY;
      if (!folder) {
        throw e;
      }
      Json.send(exchange, 200, FileJson.of(there));
    }
  }

  record MoveRequest(
      String source,
      String destination,
      Optional<String> user,
      Optional<Boolean> parents,
      Optional<Boolean> overwrite) {}

  private void move(Exchange exchange, Guest guest) {
    exchange.query().allow();
    var request = Json.read(exchange, MoveRequest.class, BODY_BYTES_MAX);
    FileEntry moved =
        guest.move(
            request.source(),
            request.destination(),
            request.user(),
            request.parents().orElse(true),
            request.overwrite().orElse(false));
    Json.send(exchange, 200, FileJson.of(moved));
  }

  // -- watching and trees

  private void watch(Exchange exchange, Guest guest) {
    var query = exchange.query().allow("path", "user", "recursive", "entries");
    var spec =
        new Guest.WatchSpec(
            query.required("path"),
            user(query),
            query.flag("recursive", false),
            query.flag("entries", false),
            false);
    // The stream opens with the first event, "armed": what fails before has a status of its own.
    var opened = new AtomicReference<Optional<EventStream>>(Optional.empty());
    guest.watch(
        spec,
        event -> {
          EventStream events = opened.get().orElseGet(exchange::events);
          opened.set(Optional.of(events));
          var data = new LinkedHashMap<String, Object>();
          data.put("name", event.name());
          event.entry().ifPresent(entry -> data.put("entry", FileJson.of(entry)));
          data.put("at_millis", event.atMillis());
          events.append("", event.kind().name().toLowerCase(Locale.ROOT), Json.bytes(data));
          events.flush();
        });
  }

  private void readTree(Exchange exchange, Guest guest) throws IOException {
    var query = exchange.query().allow("path", "user");
    String path = query.required("path");
    try (InputStream tar = guest.readTree(path, user(query))) {
      // Nothing is promised before the first bytes are there.
      byte[] first = tar.readNBytes(512);
      String name = path.substring(path.lastIndexOf('/') + 1);
      exchange.header(
          "Content-Disposition", disposition((name.isEmpty() ? "root" : name) + ".tar"));
      OutputStream out = exchange.stream(TAR);
      out.write(first);
      Bodies.copy(tar, out);
    }
  }

  private void writeTree(Exchange exchange, Guest guest) throws IOException {
    var query = exchange.query().allow("path", "user", "keep_owners");
    Guest.TreeWritten written =
        guest.writeTree(
            query.required("path"), user(query), query.flag("keep_owners", false), exchange.body());
    Json.send(exchange, 200, Map.of("files", written.files(), "bytes", written.bytes()));
  }
}
