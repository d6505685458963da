package dev.space.image;

import dev.space.host.Command;
import dev.space.host.Processes;
import dev.space.host.Processes.Finished;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;

/// Makes ext4 images with `mke2fs`, without mounting. Features are named one by one, so that the
/// host's mke2fs.conf and its version change nothing; identifiers and times are fixed.
final class Ext4 {

  private static final Duration MAX = Duration.ofMinutes(10);
  private static final String FEATURES =
      "none,extent,dir_index,filetype,sparse_super,large_file,huge_file,dir_nlink,extra_isize,"
          + "flex_bg,ext_attr,64bit,uninit_bg";
  private static final String UUID = "5bace000-0000-4000-8000-000000000001";
  private static final int INODE_BYTES = 256;

  private final Processes processes;
  private final List<String> prefix;

  /// @param prefix words before the tool, which make it see the owners of the files
  Ext4(Processes processes, List<String> prefix) {
    this.processes = processes;
    this.prefix = List.copyOf(prefix);
  }

  /// A read-only file system with the content of a directory, as small as that needs.
  void readOnly(Path image, Path tree, RootTar.Content content, Consumer<String> line)
      throws IOException {
    long inodes = content.entries() + content.entries() / 20 + 256;
    long bytes =
        content.dataBytes()
            + content.dataBytes() / 40
            + content.entries() * 1024
            + inodes * INODE_BYTES
            + (24L << 20);
    List<String> argv = start("root", FEATURES);
    argv.addAll(
        List.of("-N", String.valueOf(inodes), "-d", tree.toString(), image.toString(), kib(bytes)));
    make(argv, line);
  }

  /// An empty file system for an overlay: `upper` and `work` and a small journal. Its inode tables
  /// are holes that mke2fs marks as zeroed, so that no guest zeroes them in the background.
  void writable(Path image, Path tree, int mib) throws IOException {
    List<String> argv = start("disk", FEATURES + ",has_journal");
    argv.addAll(
        List.of(
            "-J",
            "size=" + (mib < 256 ? 1 : 8),
            "-i",
            "16384",
            "-d",
            tree.toString(),
            image.toString(),
            kib((long) mib << 20)));
    make(argv, _ -> {});
  }

  private List<String> start(String label, String features) {
    List<String> argv = new ArrayList<>(prefix);
    argv.addAll(
        List.of(
            "mke2fs",
            "-q",
            "-F",
            "-t",
            "ext4",
            "-b",
            "4096",
            "-I",
            String.valueOf(INODE_BYTES),
            "-m",
            "0",
            "-L",
            label,
            "-U",
            UUID,
            "-O",
            features,
            "-E",
            "hash_seed=" + UUID + ",root_owner=0:0,lazy_itable_init=1,lazy_journal_init=1"));
    return argv;
  }

  private void make(List<String> argv, Consumer<String> line) throws IOException {
    Command command =
        Command.of(MAX, argv)
            .env(
                Map.of(
                    "E2FSPROGS_FAKE_TIME",
                    String.valueOf(BuildHooks.EPOCH_SECONDS),
                    "MKE2FS_CONFIG",
                    "/dev/null"));
    Finished finished = processes.run(command, line);
    if (!finished.ok()) {
      throw new IOException("mke2fs: " + finished.said());
    }
  }

  private static String kib(long bytes) {
    return (bytes + 1023) / 1024 + "k";
  }
}
