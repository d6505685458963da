package dev.space.app;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import dev.space.wire.EventReader;
import java.io.IOException;
import java.io.InputStream;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.security.DigestInputStream;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;

/// Files of a real VM, over the API and by the command line.
@Tag("vm")
@Tag("slow")
@Timeout(300)
@ExtendWith(RealPlane.Shared.class)
class FilesVmTest {

  private static final String ODD = "a b'\"\\ \n\u00e4\u20ac\uD83D\uDE00";

  private final RealPlane plane;

  FilesVmTest(RealPlane plane) {
    this.plane = plane;
  }

  private HttpResponse<byte[]> read(String path, String... headers) throws Exception {
    var request = plane.authorized(plane.files("", path));
    if (headers.length > 0) {
      request.headers(headers);
    }
    return plane.http().send(request.build(), BodyHandlers.ofByteArray());
  }

  private HttpResponse<String> write(String path, String more, byte[] body) {
    return plane.send(
        plane.authorized(plane.files("", path) + more).PUT(BodyPublishers.ofByteArray(body)));
  }

  private String octal(String path) {
    return plane.json(plane.files("/stat", path)).path("mode").asString();
  }

  /// Resident memory of the daemon, in bytes.
  private long daemonBytes() throws IOException {
    String status = Files.readString(Path.of("/proc/" + plane.daemon().pid() + "/status"));
    return Long.parseLong(status.replaceAll("(?s).*VmRSS:\\s*([0-9]+) kB.*", "$1")) * 1024;
  }

  @Test
  @DisplayName(
      "behaviour 30: a large file goes up and down with constant memory, equal to the byte")
  void largeFile() throws Exception {
    long size = Long.getLong("space.test.file_mib", 256) << 20;
    byte[] piece = new byte[1 << 20];
    new java.util.Random(30).nextBytes(piece);
    MessageDigest up = sha256();
    InputStream source =
        new java.io.SequenceInputStream(
            java.util.Collections.enumeration(
                IntStream.range(0, (int) (size >> 20))
                    .mapToObj(_ -> (InputStream) new java.io.ByteArrayInputStream(piece))
                    .toList()));
    long before = daemonBytes();
    var put =
        plane.send(
            plane
                .authorized(plane.files("", "/home/user/large"))
                .PUT(BodyPublishers.ofInputStream(() -> new DigestInputStream(source, up))));
    assertThat(put.statusCode()).as(put.body()).isEqualTo(200);
    MessageDigest down = sha256();
    HttpResponse<InputStream> got =
        plane
            .http()
            .send(
                plane.authorized(plane.files("", "/home/user/large")).build(),
                BodyHandlers.ofInputStream());
    long bytes;
    try (var in = new DigestInputStream(got.body(), down)) {
      bytes = in.transferTo(java.io.OutputStream.nullOutputStream());
    }
    assertThat(bytes).isEqualTo(size);
    assertThat(HexFormat.of().formatHex(down.digest()))
        .isEqualTo(HexFormat.of().formatHex(up.digest()));
    // Far less than the file; the heap's own limit (160 MiB) is below it too.
    assertThat(daemonBytes() - before).isLessThan(96L << 20);
    plane.sh("rm /home/user/large");
  }

  private static MessageDigest sha256() {
    try {
      return MessageDigest.getInstance("SHA-256");
    } catch (NoSuchAlgorithmException e) {
      throw new AssertionError(e);
    }
  }

  @Test
  @DisplayName("ranges, tags of content, atomic writes, modes and owners")
  void readAndWrite() throws Exception {
    assertThat(write("/home/user/d/e/f", "&mode=0640", "0123456789".getBytes(UTF_8)).statusCode())
        .isEqualTo(200);
    var whole = read("/home/user/d/e/f");
    assertThat(new String(whole.body(), UTF_8)).isEqualTo("0123456789");
    String tag = whole.headers().firstValue("ETag").orElseThrow();
    assertThat(read("/home/user/d/e/f", "If-None-Match", tag).statusCode()).isEqualTo(304);
    var part = read("/home/user/d/e/f", "Range", "bytes=2-4");
    assertThat(part.statusCode()).isEqualTo(206);
    assertThat(new String(part.body(), UTF_8)).isEqualTo("234");
    assertThat(new String(read("/home/user/d/e/f", "Range", "bytes=-3").body(), UTF_8))
        .isEqualTo("789");
    assertThat(read("/home/user/d/e/f", "Range", "bytes=99-").statusCode()).isEqualTo(416);
    write("/home/user/d/e/f", "", "new".getBytes(UTF_8));
    assertThat(read("/home/user/d/e/f", "If-None-Match", tag).statusCode()).isEqualTo(200);
    assertThat(plane.sh("stat -c '%a %U:%G' /home/user/d/e/f /home/user/d/e").text())
        .isEqualTo("640 user:user\n755 user:user\n");
    assertThat(plane.sh("ls -A /home/user/d/e").text()).isEqualTo("f\n");
    String list = plane.json(plane.files("/list", "/home/user/d") + "&depth=2").toString();
    assertThat(list).contains("/home/user/d/e\"").contains("/home/user/d/e/f\"");
    for (int status : new int[] {201, 200}) {
      var made =
          plane.send(
              "POST",
              plane.files("/mkdir", "").replaceAll("\\?.*", ""),
              "{\"path\":\"/home/user/d/x/y\"}");
      assertThat(made.statusCode()).as(made.body()).isEqualTo(status);
    }
  }

  @Test
  @DisplayName("behaviour 31: modes, owners, links and any name survive going in and out as a tree")
  void trees(@TempDir Path dir) throws Exception {
    plane.sh(
        "mkdir -p t/sub && printf x > t/sub/run && chmod 4751 t/sub/run && ln -s sub/run t/link"
            + " && ln -s /nowhere t/broken && mkfifo t/fifo && chmod 700 t/sub");
    assertThat(write("/home/user/t/" + ODD, "", new byte[] {0, (byte) 0xff, 10}).statusCode())
        .isEqualTo(200);
    var tar =
        plane
            .http()
            .send(
                plane.authorized(plane.files("/tree", "/home/user/t")).build(),
                BodyHandlers.ofByteArray());
    assertThat(tar.statusCode()).isEqualTo(200);
    var put =
        plane.send(
            plane
                .authorized(plane.files("/tree", "/home/user/t2"))
                .header("Content-Type", "application/x-tar")
                .PUT(BodyPublishers.ofByteArray(tar.body())));
    assertThat(put.statusCode()).as(put.body()).isEqualTo(200);
    String look =
        "find . -not -type p -printf '%%P|%%y|%%m|%%u|%%l|%%s\\n' | grep -v '^|' | sed 's/|d|\\(.*\\)|[0-9]*$/|d|\\1/' | sort"
            .replace("%%", "%");
    assertThat(plane.sh("cd t2 && " + look).text())
        .isEqualTo(plane.sh("cd t && " + look).text())
        .contains("sub/run|f|4751|user||1");
    assertThat(read("/home/user/t2/" + ODD).body()).isEqualTo(new byte[] {0, (byte) 0xff, 10});

    // By the command line: out, and in again under another name.
    Path out = dir.resolve("out");
    cp(dir, plane.sandbox() + ":/home/user/t", out.toString());
    assertThat(Files.readAllBytes(out.resolve(ODD))).isEqualTo(new byte[] {0, (byte) 0xff, 10});
    assertThat(Files.readSymbolicLink(out.resolve("link"))).isEqualTo(Path.of("sub/run"));
    assertThat(PosixFilePermissions.toString(Files.getPosixFilePermissions(out.resolve("sub"))))
        .isEqualTo("rwx------");
    cp(dir, out.toString(), plane.sandbox() + ":/home/user/t3");
    assertThat(
            plane
                .sh("cd t3 && find . -type l -printf '%P|%l\\n' | sort; stat -c %a sub/run")
                .text())
        .isEqualTo("broken|/nowhere\nlink|sub/run\n751\n");
    assertThat(read("/home/user/t3/" + ODD).body()).isEqualTo(new byte[] {0, (byte) 0xff, 10});
    byte[] bytes = new byte[300_000];
    new java.util.Random(31).nextBytes(bytes);
    Path one = Files.write(dir.resolve("one"), bytes);
    cp(dir, one.toString(), plane.sandbox() + ":/home/user/t3/");
    cp(dir, plane.sandbox() + ":/home/user/t3/one", dir.resolve("back").toString());
    assertThat(Files.readAllBytes(dir.resolve("back"))).isEqualTo(bytes);
  }

  private void cp(Path dir, String from, String to) throws Exception {
    Path said = dir.resolve("said");
    Process cp = plane.spaceProcess(said, "cp", from, to);
    assertThat(cp.waitFor(60, TimeUnit.SECONDS)).isTrue();
    assertThat(cp.exitValue()).as(Files.readString(said)).isZero();
  }

  @Test
  @DisplayName(
      "behaviour 32: a FIFO or a device never hangs a read; a link is followed in the guest")
  void special() throws Exception {
    plane.sh("mkfifo pipe; ln -s /etc/hostname name");
    for (String path : List.of("/home/user/pipe", "/dev/zero", "/dev/null", "/home/user")) {
      var answer = read(path);
      assertThat(answer.statusCode()).as(path).isEqualTo(422);
    }
    assertThat(new String(read("/home/user/name").body(), UTF_8))
        .isEqualTo(plane.sh("cat /etc/hostname").text())
        .isNotEqualTo(Files.readString(Path.of("/etc/hostname")));
  }

  @Test
  @DisplayName(
      "behaviour 31: an archive's owners are kept when that is asked for, and by root alone")
  void owners() throws Exception {
    plane.run(
        "{\"user\":\"root\",\"command\":\"mkdir -p /srv/o && cd /srv/o && echo x > f"
            + " && chown 1234:2345 f && mkdir d && chown 77:88 d && ln -s f l && chown -h 5:6 l\"}");
    var tar =
        plane
            .http()
            .send(
                plane.authorized(plane.files("/tree", "/srv/o") + "&user=root").build(),
                BodyHandlers.ofByteArray());
    assertThat(tar.statusCode()).isEqualTo(200);
    assertThat(unpacked(tar.body(), "/srv/kept", "&user=root&keep_owners=true"))
        .isEqualTo("d 77:88\nf 1234:2345\nl 5:6\n");
    assertThat(unpacked(tar.body(), "/srv/own", "&user=root")).isEqualTo("d 0:0\nf 0:0\nl 0:0\n");
    assertThat(unpacked(tar.body(), "/home/user/own", ""))
        .isEqualTo("d 1000:1000\nf 1000:1000\nl 1000:1000\n");
    assertThat(unpacked(tar.body(), "/home/user/asked", "&keep_owners=true"))
        .isEqualTo("d 1000:1000\nf 1000:1000\nl 1000:1000\n");
  }

  private HttpResponse<String> put(byte[] tar, String path, String more) {
    return plane.send(
        plane
            .authorized(plane.files("/tree", path) + more)
            .header("Content-Type", "application/x-tar")
            .PUT(BodyPublishers.ofByteArray(tar)));
  }

  private String unpacked(byte[] tar, String path, String more) {
    var put = put(tar, path, more);
    assertThat(put.statusCode()).as(put.body()).isEqualTo(200);
    return plane.sh("cd " + path + " && stat -c '%n %u:%g' d f l").text();
  }

  @Test
  @DisplayName("behaviour 33: a full disk is a 507 with the figures, and leaves no half file")
  void fullDisk() {
    plane.run(
        "{\"user\":\"root\",\"command\":\"mkdir -p /tmp/small && mount -t tmpfs -o size=1m,mode=777 none /tmp/small\"}");
    var answer = write("/tmp/small/f", "", new byte[4 << 20]);
    assertThat(answer.statusCode()).as(answer.body()).isEqualTo(507);
    assertThat(answer.body()).contains("guest_disk_full").containsPattern("[0-9]{5,}");
    assertThat(plane.sh("ls -A /tmp/small").text()).isEmpty();
    plane.run("{\"user\":\"root\",\"command\":\"umount /tmp/small\"}");
  }

  @Test
  @DisplayName("behaviour 34: files of /proc read to their true end")
  void proc() throws Exception {
    var cpu = read("/proc/cpuinfo");
    assertThat(new String(cpu.body(), UTF_8)).isEqualTo(plane.sh("cat /proc/cpuinfo").text());
    assertThat(new String(read("/proc/sys/kernel/ostype").body(), UTF_8)).isEqualTo("Linux\n");
    assertThat(octal("/proc/version")).isEqualTo("0444");
  }

  @Test
  @DisplayName("behaviour 35: a watch misses nothing from its start on, new folders included")
  void watch() throws Exception {
    plane.sh("mkdir -p w/deep");
    HttpResponse<InputStream> answer =
        plane
            .http()
            .send(
                plane.authorized(plane.files("/watch", "/home/user/w") + "&recursive=true").build(),
                BodyHandlers.ofInputStream());
    try (InputStream body = answer.body()) {
      var events = new EventReader(body);
      assertThat(events.next().orElseThrow().name()).isEqualTo("armed");
      plane.sh(
          "cd w && mkdir new && for i in $(seq 1 50); do echo $i > new/f$i; done; echo x > deep/y");
      var seen = new ArrayList<String>();
      while (!seen.contains("create deep/y")) {
        var event = events.next().orElseThrow();
        seen.add(
            event.name()
                + " "
                + dev.space.http.Json.mapper().readTree(event.data()).path("name").asString());
      }
      for (int i = 1; i <= 50; i++) {
        assertThat(seen).contains("create new/f" + i);
      }
    }
  }
}
