package dev.space.vmm.simulated;

import dev.space.core.error.ErrorCode;
import dev.space.core.error.Problem;
import dev.space.core.guest.FileEntry;
import dev.space.core.guest.Guest.TreeWritten;
import dev.space.core.guest.WriteFileSpec;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.Optional;
import org.apache.commons.compress.archivers.tar.TarArchiveEntry;
import org.apache.commons.compress.archivers.tar.TarArchiveInputStream;
import org.apache.commons.compress.archivers.tar.TarArchiveOutputStream;
import org.apache.commons.compress.archivers.tar.TarConstants;

/// Trees of a simulated guest as tar streams.
final class SimulatedTrees {

  private SimulatedTrees() {}

  static byte[] pack(SimulatedFiles files, String path) {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    try (TarArchiveOutputStream tar =
        new TarArchiveOutputStream(bytes, StandardCharsets.UTF_8.name())) {
      tar.setLongFileMode(TarArchiveOutputStream.LONGFILE_POSIX);
      tar.setAddPaxHeadersForNonAsciiNames(true);
      for (FileEntry entry : files.list(path, Integer.MAX_VALUE)) {
        String name = entry.path().substring(path.equals("/") ? 1 : path.length() + 1);
        TarArchiveEntry head =
            switch (entry.type()) {
              case DIRECTORY -> new TarArchiveEntry(name + "/");
              case SYMLINK -> new TarArchiveEntry(name, TarConstants.LF_SYMLINK);
              case FILE, FIFO, SOCKET, CHAR_DEVICE, BLOCK_DEVICE, UNKNOWN ->
                  new TarArchiveEntry(name);
            };
        head.setMode(entry.mode());
        head.setUserId(entry.uid());
        head.setGroupId(entry.gid());
        head.setModTime(entry.modifiedAt().toEpochMilli());
        entry.symlinkTarget().ifPresent(head::setLinkName);
        byte[] data = entry.type() == FileEntry.Type.FILE ? files.read(entry.path()) : new byte[0];
        head.setSize(data.length);
        tar.putArchiveEntry(head);
        tar.write(data);
        tar.closeArchiveEntry();
      }
    } catch (IOException e) {
      throw Problem.of(ErrorCode.INTERNAL, "Packing " + path + " failed")
          .because(e.toString())
          .toException(e);
    }
    return bytes.toByteArray();
  }

  static TreeWritten unpack(
      SimulatedFiles files, String path, int uid, boolean keepOwners, byte[] data) {
    long count = 0;
    long size = 0;
    files.makeDir(path, 0755, true, uid);
    try (TarArchiveInputStream tar =
        new TarArchiveInputStream(new ByteArrayInputStream(data), StandardCharsets.UTF_8.name())) {
      for (TarArchiveEntry head = tar.getNextEntry(); head != null; head = tar.getNextEntry()) {
        String target = SimulatedFiles.absolute(head.getName(), path);
        if (!target.equals(path) && !target.startsWith(path.equals("/") ? "/" : path + "/")) {
          throw Problem.of(ErrorCode.INVALID_REQUEST, "The archive leads out of " + path)
              .toException();
        }
        int owner = keepOwners ? (int) head.getLongUserId() : uid;
        if (head.isDirectory()) {
          files.makeDir(target, head.getMode() & 07777, true, owner);
        } else if (head.isSymbolicLink()) {
          files.link(target, head.getLinkName(), owner);
        } else {
          byte[] body = tar.readAllBytes();
          files.write(
              new WriteFileSpec(
                  target,
                  Optional.empty(),
                  Optional.of(head.getMode() & 07777),
                  true,
                  false,
                  Optional.empty(),
                  0),
              target,
              body,
              owner);
          size += body.length;
        }
        count++;
      }
    } catch (IOException e) {
      throw Problem.of(ErrorCode.MALFORMED_BODY, "The archive can't be read")
          .because(e.toString())
          .toException(e);
    }
    return new TreeWritten(count, size);
  }
}
