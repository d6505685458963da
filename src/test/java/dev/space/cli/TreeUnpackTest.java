package dev.space.cli;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.space.core.error.SpaceException;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import org.apache.commons.compress.archivers.tar.TarArchiveEntry;
import org.apache.commons.compress.archivers.tar.TarArchiveOutputStream;
import org.apache.commons.compress.archivers.tar.TarConstants;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// Copying trees: everything survives (behaviour 31) and nothing is written elsewhere (behaviour
/// 32).
class TreeUnpackTest {

  @TempDir Path dir;
  private Path target;
  private Path outside;

  @BeforeEach
  void folders() throws IOException {
    target = Files.createDirectory(dir.resolve("target"));
    outside = Files.writeString(dir.resolve("outside"), "untouched");
  }

  @Test
  @DisplayName("behaviour 31: modes, links and strange names survive the way through an archive")
  void treesSurvive() throws IOException {
    Path source = Files.createDirectories(dir.resolve("source/a b/ü'\"\n"));
    Path script = Files.writeString(source.resolve("run"), "#!/bin/sh\n");
    Files.setPosixFilePermissions(script, PosixFilePermissions.fromString("rwxr-x--x"));
    Files.createSymbolicLink(source.resolve("link"), Path.of("run"));
    Files.createSymbolicLink(source.resolve("dangling"), Path.of("/no/such/file"));
    Files.write(source.resolve("x".repeat(200)), new byte[300_000]);
    Files.createDirectory(source.resolve("empty"));

    try (InputStream tar = TarStreams.pack(dir.resolve("source"))) {
      new TreeUnpack(target, _ -> {}).unpack(tar);
    }

    Path copy = target.resolve("a b/ü'\"\n");
    assertThat(copy.resolve("run")).hasContent("#!/bin/sh\n");
    assertThat(PosixFilePermissions.toString(Files.getPosixFilePermissions(copy.resolve("run"))))
        .isEqualTo("rwxr-x--x");
    assertThat(Files.readSymbolicLink(copy.resolve("link"))).isEqualTo(Path.of("run"));
    assertThat(Files.readSymbolicLink(copy.resolve("dangling")))
        .isEqualTo(Path.of("/no/such/file"));
    assertThat(copy.resolve("x".repeat(200))).hasSize(300_000);
    assertThat(copy.resolve("empty")).isEmptyDirectory();
  }

  @Test
  @DisplayName("behaviour 32: a name with .. writes nothing outside")
  void dotsDoNotLeadOut() throws IOException {
    refused(archive(tar -> file(tar, "../outside", "evil")));
  }

  @Test
  void absoluteNamesStayInside() throws IOException {
    new TreeUnpack(target, _ -> {}).unpack(archive(tar -> file(tar, "/etc/x", "inside")));
    assertThat(target.resolve("etc/x")).hasContent("inside");
  }

  @Test
  @DisplayName("behaviour 32: nothing is written through a link of the archive")
  void linksAreNotFollowed() throws IOException {
    refused(
        archive(
            tar -> {
              link(tar, TarConstants.LF_SYMLINK, "way", dir.toString());
              file(tar, "way/outside", "evil");
            }));
  }

  @Test
  void aFileReplacesALinkInsteadOfWritingThroughIt() throws IOException {
    Files.createSymbolicLink(target.resolve("name"), outside);
    new TreeUnpack(target, _ -> {}).unpack(archive(tar -> file(tar, "name", "new")));
    assertThat(target.resolve("name")).hasContent("new").isRegularFile();
    assertThat(Files.isSymbolicLink(target.resolve("name"))).isFalse();
    assertThat(outside).hasContent("untouched");
  }

  @Test
  void hardLinksStayInside() throws IOException {
    refused(archive(tar -> link(tar, TarConstants.LF_LINK, "name", "../outside")));
    Files.createSymbolicLink(target.resolve("way"), outside);
    refused(archive(tar -> link(tar, TarConstants.LF_LINK, "name", "way")));
    new TreeUnpack(target, _ -> {})
        .unpack(
            archive(
                tar -> {
                  file(tar, "one", "content");
                  link(tar, TarConstants.LF_LINK, "two", "one");
                }));
    assertThat(target.resolve("two")).hasContent("content");
  }

  @Test
  void aTreeThatBreaksOffIsAnError() throws IOException {
    byte[] whole = archive(tar -> file(tar, "a", "x".repeat(5000))).readAllBytes();
    InputStream half = new ByteArrayInputStream(whole, 0, 2000);
    assertThatThrownBy(() -> new TreeUnpack(target, _ -> {}).unpack(half))
        .isInstanceOf(IOException.class);
  }

  private void refused(InputStream tar) throws IOException {
    TreeUnpack unpack = new TreeUnpack(target, _ -> {});
    assertThatThrownBy(() -> unpack.unpack(tar)).isInstanceOf(SpaceException.class);
    assertThat(outside).hasContent("untouched");
    assertThat(Files.exists(target.resolve("name"), LinkOption.NOFOLLOW_LINKS)).isFalse();
  }

  private interface Content {
    void write(TarArchiveOutputStream tar) throws IOException;
  }

  private static InputStream archive(Content content) throws IOException {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    try (TarArchiveOutputStream tar = new TarArchiveOutputStream(bytes, "UTF-8")) {
      content.write(tar);
    }
    return new ByteArrayInputStream(bytes.toByteArray());
  }

  private static void file(TarArchiveOutputStream tar, String name, String text)
      throws IOException {
    TarArchiveEntry entry = new TarArchiveEntry(name, true);
    byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
    entry.setSize(bytes.length);
    tar.putArchiveEntry(entry);
    tar.write(bytes);
    tar.closeArchiveEntry();
  }

  private static void link(TarArchiveOutputStream tar, byte kind, String name, String to)
      throws IOException {
    TarArchiveEntry entry = new TarArchiveEntry(name, kind, true);
    entry.setLinkName(to);
    tar.putArchiveEntry(entry);
    tar.closeArchiveEntry();
  }
}
