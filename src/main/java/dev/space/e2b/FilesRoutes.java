package dev.space.e2b;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.SpaceException;
import dev.space.core.guest.FileEntry;
import dev.space.core.guest.Guest;
import dev.space.core.guest.WriteFileSpec;
import dev.space.http.Exchange;
import dev.space.http.Json;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.URLConnection;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.zip.GZIPInputStream;
import java.util.zip.GZIPOutputStream;
import java.util.zip.ZipException;

/// `GET` and `POST /files` of a sandbox.
final class FilesRoutes {

  private static final int BUFFER_BYTES = 64 * 1024;
  private static final int METADATA_BYTES_MAX = 4096;
  private static final int METADATA_KEY_BYTES_MAX = 246;
  private static final String METADATA_HEADER = "x-metadata-";
  private static final Pattern RANGE = Pattern.compile("bytes=(\\d{1,18})?-(\\d{1,18})?");

  void get(EnvdCall call) throws IOException {
    Exchange exchange = call.exchange();
    String path = exchange.query().one("path").orElse("");
    try (var use = call.use()) {
      send(exchange, use.guest(), path, user(call));
    } catch (SpaceException e) {
      throw translate(e, path, call);
    }
  }

  private void send(Exchange exchange, Guest guest, String path, Optional<String> user)
      throws IOException {
    FileEntry entry = guest.stat(path, user);
    if (FilesystemRpc.isDirectory(entry)) {
      throw new E2bError(400, "path '" + path + "' is a directory");
    }
    Encoding encoding = Encoding.of(exchange);
    Optional<long[]> range =
        encoding == Encoding.IDENTITY ? range(exchange, entry.size()) : Optional.empty();
    long offset = range.map(r -> r[0]).orElse(0L);
    Optional<Long> length = range.map(r -> r[1] - r[0] + 1);
    try (Guest.FileReading reading = guest.readFile(path, user, offset, length)) {
      exchange.header(
          "Content-Disposition",
          "inline; filename*=UTF-8''"
              + java.net.URLEncoder.encode(entry.name(), StandardCharsets.UTF_8)
                  .replace("+", "%20"));
      exchange.header("Vary", "Accept-Encoding");
      exchange.header("Accept-Ranges", "bytes");
      if (range.isPresent()) {
        exchange.status(206);
        exchange.header(
            "Content-Range", "bytes " + offset + "-" + range.get()[1] + "/" + entry.size());
      }
      if (encoding == Encoding.GZIP) {
        exchange.header("Content-Encoding", "gzip");
        try (OutputStream out = new GZIPOutputStream(exchange.stream(type(entry)), BUFFER_BYTES)) {
          copy(reading.body(), out);
        }
      } else {
        long known = length.orElse(reading.entry().size());
        // Files of /proc and /sys say 0 and hold more.
        OutputStream out =
            known == 0 ? exchange.stream(type(entry)) : exchange.stream(type(entry), known);
        copy(reading.body(), out);
      }
    }
  }

  private static void copy(InputStream in, OutputStream out) throws IOException {
    byte[] buffer = new byte[BUFFER_BYTES];
    for (int n = in.read(buffer); n >= 0; n = in.read(buffer)) {
      out.write(buffer, 0, n);
    }
  }

  private static String type(FileEntry entry) {
    String guessed = URLConnection.guessContentTypeFromName(entry.name());
    return guessed == null ? "application/octet-stream" : guessed;
  }

  private static Optional<long[]> range(Exchange exchange, long size) {
    Matcher m = RANGE.matcher(exchange.header("Range").orElse(""));
    if (!m.matches() || size == 0 || (m.group(1) == null && m.group(2) == null)) {
      return Optional.empty();
    }
    long from;
    long to = size - 1;
    if (m.group(1) == null) {
      from = Math.max(0, size - Long.parseLong(m.group(2)));
    } else {
      from = Long.parseLong(m.group(1));
      if (m.group(2) != null) {
        to = Math.min(to, Long.parseLong(m.group(2)));
      }
    }
    if (from > to) {
      exchange.errorHeader("Content-Range", "bytes */" + size);
      throw new E2bError(416, "The range lies outside of the file's " + size + " bytes");
    }
    return Optional.of(new long[] {from, to});
  }

  private enum Encoding {
    IDENTITY,
    GZIP;

    static Encoding of(Exchange exchange) {
      String accepted = exchange.header("Accept-Encoding").orElse("").toLowerCase(Locale.ROOT);
      boolean identity = !accepted.matches(".*(identity|\\*)\\s*;\\s*q=0(\\.0*)?(\\s*,.*|\\s*)$");
      boolean gzip =
          accepted.matches("(.*[,\\s])?gzip(\\s*;\\s*q=(?!0(\\.0*)?\\s*(,|$))[^,]*)?(\\s*,.*)?");
      boolean ranged = exchange.header("Range").isPresent();
      // Only a client that asks for gzip alone gets it: over loopback it costs more than it saves.
      if (gzip && !ranged && (!identity || accepted.strip().equals("gzip"))) {
        return GZIP;
      }
      if (!identity) {
        throw new E2bError(406, "no acceptable encoding");
      }
      return IDENTITY;
    }
  }

  void post(EnvdCall call) throws IOException {
    Exchange exchange = call.exchange();
    String type = exchange.header("Content-Type").orElse("");
    Optional<String> path = exchange.query().one("path").filter(p -> !p.isEmpty());
    List<Map<String, Object>> written = new ArrayList<>();
    try (var use = call.use();
        InputStream body = decoded(exchange)) {
      Upload upload = new Upload(use.guest(), user(call), metadata(exchange), written);
      if (type.regionMatches(true, 0, "multipart/form-data", 0, 19)) {
        Multipart.read(
            type,
            body,
            (name, filename, part) -> {
              if (name.equals("file")) {
                upload.write(path.or(() -> filename).orElse(""), part);
              }
            });
      } else if (type.regionMatches(true, 0, "application/octet-stream", 0, 24)) {
        upload.write(path.orElse(""), body);
      } else {
        throw new E2bError(400, "unsupported content type '" + type + "'");
      }
    } catch (SpaceException e) {
      throw translate(e, path.orElse(""), call);
    } catch (ZipException e) {
      throw new E2bError(400, "the body is not valid gzip: " + e.getMessage());
    }
    Json.send(exchange, 200, written);
  }

  private static InputStream decoded(Exchange exchange) throws IOException {
    return switch (exchange
        .header("Content-Encoding")
        .orElse("identity")
        .strip()
        .toLowerCase(Locale.ROOT)) {
      case "", "identity" -> exchange.body();
      case "gzip" -> new GZIPInputStream(exchange.body(), BUFFER_BYTES);
      default -> throw new E2bError(400, "unsupported content encoding");
    };
  }

  /// The files of one upload.
  private record Upload(
      Guest guest,
      Optional<String> user,
      Map<String, byte[]> metadata,
      List<Map<String, Object>> written,
      Set<String> paths) {

    private Upload(
        Guest guest,
        Optional<String> user,
        Map<String, byte[]> metadata,
        List<Map<String, Object>> written) {
      this(guest, user, metadata, written, new HashSet<>());
    }

    private void write(String path, InputStream body) throws IOException {
      if (path.isEmpty()) {
        throw new E2bError(400, "path is required");
      }
      Optional<FileEntry> there = FilesystemRpc.find(guest, path, user);
      if (there.filter(FilesystemRpc::isDirectory).isPresent()) {
        throw new E2bError(400, "path is a directory: " + path);
      }
      if (!paths.add(path)) {
        throw new E2bError(400, "the file " + path + " is in this request twice");
      }
      FileEntry entry =
          guest.writeFile(
              new WriteFileSpec(
                  path,
                  user,
                  Optional.empty(),
                  true,
                  false,
                  Optional.of(new WriteFileSpec.Xattrs(Entries.METADATA_PREFIX, metadata)),
                  0),
              body);
      Map<String, Object> answer = new LinkedHashMap<>();
      answer.put("name", entry.name());
      answer.put("path", entry.path());
      answer.put("type", "file");
      if (!metadata.isEmpty()) {
        Map<String, String> stored = new LinkedHashMap<>();
        metadata.forEach((k, v) -> stored.put(k, new String(v, StandardCharsets.UTF_8)));
        answer.put("metadata", stored);
      }
      written.add(answer);
    }
  }

  private static Map<String, byte[]> metadata(Exchange exchange) {
    Map<String, byte[]> found = new LinkedHashMap<>();
    int[] bytes = {0};
    exchange.eachHeader(
        (name, value) -> {
          String lower = name.toLowerCase(Locale.ROOT);
          if (!lower.startsWith(METADATA_HEADER)) {
            return;
          }
          String key = lower.substring(METADATA_HEADER.length());
          bytes[0] += key.length() + value.length();
          if (key.isEmpty()
              || key.length() > METADATA_KEY_BYTES_MAX
              || bytes[0] > METADATA_BYTES_MAX) {
            throw new E2bError(400, "the metadata is too large or has an empty key");
          }
          if (!value.chars().allMatch(c -> c >= 0x20 && c < 0x7f)) {
            throw new E2bError(400, "metadata values are printable ASCII");
          }
          found.put(key, value.getBytes(StandardCharsets.UTF_8));
        });
    return found;
  }

  private static Optional<String> user(EnvdCall call) {
    return call.exchange().query().one("username").filter(u -> !u.isEmpty()).or(call::user);
  }

  private static RuntimeException translate(SpaceException e, String path, EnvdCall call) {
    ErrorCode code = e.code();
    return switch (code) {
      case FILE_NOT_FOUND -> new E2bError(404, "path '" + path + "' does not exist");
      case USER_NOT_FOUND -> new E2bError(401, "invalid username: '" + user(call).orElse("") + "'");
      case GUEST_DISK_FULL -> new E2bError(507, e.problem().oneLine());
      case NOT_A_FILE, INVALID_REQUEST -> new E2bError(400, e.problem().oneLine());
      case NOT_A_DIRECTORY, PERMISSION_DENIED -> new E2bError(500, e.problem().oneLine());
      default -> e;
    };
  }
}
