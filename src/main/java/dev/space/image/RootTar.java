package dev.space.image;

import com.github.luben.zstd.ZstdInputStream;
import com.github.luben.zstd.ZstdOutputStream;
import java.io.BufferedInputStream;
import java.io.FilterInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.DigestInputStream;
import java.security.MessageDigest;
import org.apache.commons.compress.archivers.tar.TarArchiveEntry;
import org.apache.commons.compress.archivers.tar.TarArchiveInputStream;

/// A root file system as a tar archive: its hash, its needs, its compressed form.
final class RootTar {

  private static final int BLOCK = 4096;
  private static final int LEVEL = 3;

  private RootTar() {}

  /// @param sha256 of the whole archive
  /// @param dataBytes of the files, in whole 4 KiB blocks
  /// @param entries files, directories and links
  record Content(String sha256, long dataBytes, long entries) {}

  /// Reads an archive once: hashes it, counts it, and writes it compressed.
  static Content compress(Path tar, Path zstd) throws IOException {
    MessageDigest digest = Digests.sha256();
    try (InputStream in = new DigestInputStream(Files.newInputStream(tar), digest);
        OutputStream out = new ZstdOutputStream(Files.newOutputStream(zstd), LEVEL);
        Copying copying = new Copying(new BufferedInputStream(in, 256 * 1024), out);
        TarArchiveInputStream entries = new TarArchiveInputStream(copying)) {
      long data = 0;
      long count = 0;
      for (TarArchiveEntry e = entries.getNextEntry(); e != null; e = entries.getNextEntry()) {
        data += (e.getSize() + BLOCK - 1) / BLOCK * BLOCK;
        count++;
      }
      copying.rest();
      return new Content(Digests.hex(digest), data, count);
    }
  }

  static void decompress(Path zstd, Path tar) throws IOException {
    try (InputStream in = new ZstdInputStream(Files.newInputStream(zstd));
        OutputStream out = Files.newOutputStream(tar)) {
      in.transferTo(out);
    }
  }

  /// Writes whatever is read or skipped to another stream.
  private static final class Copying extends FilterInputStream {
    private final OutputStream to;

    Copying(InputStream in, OutputStream to) {
      super(in);
      this.to = to;
    }

    @Override
    public int read() throws IOException {
      int b = in.read();
      if (b >= 0) {
        to.write(b);
      }
      return b;
    }

    @Override
    public int read(byte[] buffer, int offset, int length) throws IOException {
      int n = in.read(buffer, offset, length);
      if (n > 0) {
        to.write(buffer, offset, n);
      }
      return n;
    }

    @Override
    public long skip(long n) throws IOException {
      byte[] buffer = new byte[64 * 1024];
      long left = n;
      while (left > 0) {
        int got = read(buffer, 0, (int) Math.min(buffer.length, left));
        if (got < 0) {
          break;
        }
        left -= got;
      }
      return n - left;
    }

    @Override
    public boolean markSupported() {
      return false;
    }

    void rest() throws IOException {
      byte[] buffer = new byte[64 * 1024];
      while (read(buffer, 0, buffer.length) >= 0) {
        // Reading is what copies.
      }
    }
  }
}
