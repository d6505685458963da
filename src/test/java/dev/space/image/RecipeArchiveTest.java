package dev.space.image;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.SpaceException;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.stream.Stream;
import java.util.zip.GZIPOutputStream;
import org.apache.commons.compress.archivers.tar.TarArchiveEntry;
import org.apache.commons.compress.archivers.tar.TarArchiveOutputStream;
import org.apache.commons.compress.archivers.tar.TarConstants;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class RecipeArchiveTest {

  @TempDir private Path dir;
  private Path root;
  private final ByteArrayOutputStream bytes = new ByteArrayOutputStream();
  private final TarArchiveOutputStream tar = new TarArchiveOutputStream(bytes);

  @BeforeEach
  void makeRoot() throws IOException {
    root = Files.createDirectory(dir.resolve("root")).toRealPath();
    tar.setLongFileMode(TarArchiveOutputStream.LONGFILE_POSIX);
  }

  private void add(TarArchiveEntry entry, String content) throws IOException {
    byte[] body = content.getBytes(StandardCharsets.UTF_8);
    entry.setSize(body.length);
    tar.putArchiveEntry(entry);
    tar.write(body);
    tar.closeArchiveEntry();
  }

  private void file(String name, String content) throws IOException {
    add(new TarArchiveEntry(name, true), content);
  }

  private void special(String name, byte kind, String link) throws IOException {
    TarArchiveEntry entry = new TarArchiveEntry(name, kind, true);
    entry.setLinkName(link);
    add(entry, "");
  }

  private void unpack() throws IOException {
    tar.finish();
    RecipeArchive.unpack(new ByteArrayInputStream(bytes.toByteArray()), root);
  }

  private void refused(String word) throws IOException {
    assertThatThrownBy(this::unpack)
        .isInstanceOfSatisfying(
            SpaceException.class,
            e -> {
              assertThat(e.code()).isEqualTo(ErrorCode.MALFORMED_BODY);
              assertThat(e.problem().oneLine()).contains(word);
            });
    try (Stream<Path> beside = Files.list(dir)) {
      assertThat(beside).containsExactly(dir.resolve("root"));
    }
  }

  @Test
  void unpacksFilesDirectoriesAndLinksInside() throws IOException {
    file("./template.yaml", "name: a\n");
    TarArchiveEntry program = new TarArchiveEntry("sub/näme with 'quotes'\n.sh");
    program.setMode(0755);
    add(program, "x");
    special("sub/link", TarConstants.LF_SYMLINK, "../template.yaml");
    unpack();
    assertThat(root.resolve("template.yaml")).hasContent("name: a\n");
    assertThat(Files.isExecutable(root.resolve("sub/näme with 'quotes'\n.sh"))).isTrue();
    assertThat(Files.readString(root.resolve("sub/link"))).isEqualTo("name: a\n");
  }

  @Test
  void unpacksGzip() throws IOException {
    file("template.yaml", "x");
    tar.finish();
    ByteArrayOutputStream zipped = new ByteArrayOutputStream();
    try (GZIPOutputStream gzip = new GZIPOutputStream(zipped)) {
      gzip.write(bytes.toByteArray());
    }
    RecipeArchive.unpack(new ByteArrayInputStream(zipped.toByteArray()), root);
    assertThat(root.resolve("template.yaml")).hasContent("x");
  }

  @Test
  void refusesParentPaths() throws IOException {
    file("a/../../evil", "x");
    refused("leave");
  }

  @Test
  void refusesAbsolutePaths() throws IOException {
    file("/tmp/evil", "x");
    refused("leave");
  }

  @Test
  void refusesLinksOut() throws IOException {
    special("a", TarConstants.LF_SYMLINK, "../out");
    refused("links out");
  }

  @Test
  void refusesAbsoluteLinks() throws IOException {
    special("a", TarConstants.LF_SYMLINK, "/etc/passwd");
    refused("links out");
  }

  @Test
  void refusesToWriteThroughALink() throws IOException {
    file("real/x", "x");
    special("link", TarConstants.LF_SYMLINK, "real");
    file("link/y", "y");
    refused("through a symbolic link");
  }

  @Test
  void refusesToReplaceALinkByAFile() throws IOException {
    file("real", "x");
    special("link", TarConstants.LF_SYMLINK, "real");
    file("link", "y");
    refused("twice");
  }

  @Test
  void refusesHardLinks() throws IOException {
    file("a", "x");
    special("b", TarConstants.LF_LINK, "a");
    refused("neither");
  }

  @Test
  void refusesDevicesAndPipes() throws IOException {
    special("d", TarConstants.LF_BLK, "");
    refused("neither");
  }

  @Test
  void refusesAFileThatEndsTooEarly() throws IOException {
    file("a", "x".repeat(5000));
    tar.finish();
    assertThatThrownBy(
            () ->
                RecipeArchive.unpack(new ByteArrayInputStream(bytes.toByteArray(), 0, 2000), root))
        .isInstanceOfSatisfying(
            SpaceException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.MALFORMED_BODY));
  }

  @Test
  void refusesWhatIsNoTar() {
    for (String body : new String[] {"", "hello", "x".repeat(5000)}) {
      assertThatThrownBy(
              () ->
                  RecipeArchive.unpack(
                      new ByteArrayInputStream(body.getBytes(StandardCharsets.UTF_8)), root))
          .isInstanceOf(SpaceException.class);
    }
  }

  @Test
  void refusesTooManyEntries() throws IOException {
    for (int i = 0; i <= RecipeArchive.ENTRIES_MAX; i++) {
      add(new TarArchiveEntry("./"), "");
    }
    assertThatThrownBy(this::unpack)
        .isInstanceOfSatisfying(
            SpaceException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.BODY_TOO_LARGE));
  }
}
