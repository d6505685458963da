package dev.space.cli;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.error.SpaceException;
import dev.space.wire.WireRequest.Body;
import dev.space.wire.WireResponse;
import java.io.FilterInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.Optional;
import java.util.OptionalLong;
import org.jspecify.annotations.Nullable;
import tools.jackson.databind.JsonNode;

/// Files of one sandbox: streamed both ways, with the bytes that went so far as progress.
final class SandboxFiles {

  private static final String TAR = "application/x-tar";

  private final Api api;
  private final String base;
  private final Optional<String> user;
  private final Progress progress;

  /// @param api speaks to the data plane
  SandboxFiles(Api api, String sandboxId, Optional<String> user, Progress progress) {
    this.api = api;
    this.base = "/v1/sandboxes/" + Api.part(sandboxId) + "/files";
    this.user = user;
    this.progress = progress;
  }

  private String target(String call, String path) {
    String who = user.map(name -> "&user=" + Api.part(name)).orElse("");
    return base + call + "?path=" + Api.part(path) + who;
  }

  private Optional<JsonNode> stat(String path) {
    try {
      return Optional.of(api.get(target("/stat", path)));
    } catch (SpaceException e) {
      if (e.code() == ErrorCode.FILE_NOT_FOUND) {
        return Optional.empty();
      }
      throw e;
    }
  }

  /// Whether a path leads to a folder, links followed.
  boolean isFolder(String path) {
    JsonNode entry =
        stat(path)
            .orElseThrow(
                () ->
                    Problem.of(ErrorCode.FILE_NOT_FOUND, "There is no " + path + " in the sandbox")
                        .remedy("Look what there is: space exec ID -- ls -l")
                        .toException());
    return isFolder(entry);
  }

  private static boolean isFolder(JsonNode entry) {
    String type = entry.path("target").path("type").asString(entry.path("type").asString(""));
    return type.equals("directory");
  }

  /// Where a source of a name goes: below the target when that is a folder, else the target itself.
  String below(String path, @Nullable Path name) {
    boolean folder = path.endsWith("/") || stat(path).filter(SandboxFiles::isFolder).isPresent();
    return folder && name != null ? path.replaceFirst("/+$", "") + "/" + name : path;
  }

  void uploadFile(Path local, String path) throws IOException {
    if (!Files.isRegularFile(local)) {
      throw Problem.of(ErrorCode.INVALID_REQUEST, local + " is neither a file nor a folder")
          .remedy("Name one that is there; devices, sockets and pipes can't be copied.")
          .toException();
    }
    long size = Files.size(local);
    String mode = "&mode=" + String.format("%04o", FileModes.of(local));
    try (InputStream in = Files.newInputStream(local)) {
      send("", path, mode, "application/octet-stream", in, OptionalLong.of(size));
    }
  }

  void uploadTree(Path local, String path) throws IOException {
    try (InputStream tar = TarStreams.pack(local)) {
      send("/tree", path, "", TAR, tar, OptionalLong.empty());
    }
  }

  private void send(
      String call, String path, String more, String type, InputStream in, OptionalLong size) {
    InputStream counted = new Counted(in, "sent", size, progress);
    api.json(
        api.request("PUT", target(call, path) + more)
            .header("Content-Type", type)
            .body(new Body.Stream(counted, size))
            .silentFor(Api.SILENCE.multipliedBy(6)));
  }

  /// Downloads aside and renames: a file that is there is whole.
  void downloadFile(String path, Path local) throws IOException {
    Path folder = local.toAbsolutePath().getParent();
    Path part = Files.createTempFile(folder == null ? Path.of("/") : folder, ".space-", ".part");
    try (WireResponse response = open("", path)) {
      OptionalLong size =
          response.headers().first("Content-Length").stream()
              .mapToLong(Long::parseLong)
              .findFirst();
      try (InputStream in = new Counted(response.body(), "received", size, progress)) {
        Files.copy(in, part, StandardCopyOption.REPLACE_EXISTING);
      }
      String octal = stat(path).map(entry -> entry.path("mode").asString("")).orElse("");
      if (octal.matches("[0-7]{1,5}")) {
        Files.setPosixFilePermissions(part, FileModes.permissions(Integer.parseInt(octal, 8)));
      }
      Files.move(part, local, StandardCopyOption.REPLACE_EXISTING);
    } finally {
      Files.deleteIfExists(part);
    }
  }

  void downloadTree(String path, Path local) throws IOException {
    Files.createDirectories(local);
    try (WireResponse response = open("/tree", path)) {
      new TreeUnpack(local, n -> progress.step("received " + Ages.bytes(n)))
          .unpack(response.body());
    }
  }

  private WireResponse open(String call, String path) {
    return api.open(api.request("GET", target(call, path)).silentFor(Api.SILENCE.multipliedBy(6)));
  }

  /// Tells how many bytes went through.
  private static final class Counted extends FilterInputStream {
    private final String verb;
    private final OptionalLong size;
    private final Progress progress;
    private long count;

    Counted(InputStream in, String verb, OptionalLong size, Progress progress) {
      super(in);
      this.verb = verb;
      this.size = size;
      this.progress = progress;
    }

    @Override
    public int read() throws IOException {
      int c = in.read();
      count += c < 0 ? 0 : 1;
      return c;
    }

    @Override
    public int read(byte[] into, int offset, int length) throws IOException {
      int n = in.read(into, offset, length);
      if (n > 0) {
        count += n;
        String of = size.isPresent() ? " of " + Ages.bytes(size.getAsLong()) : "";
        progress.step(verb + " " + Ages.bytes(count) + of);
      }
      return n;
    }
  }
}
