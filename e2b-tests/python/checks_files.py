"""Files, watches, signed URLs, ports, git."""

import io
import os
import urllib.error
import urllib.request
from datetime import datetime, timezone

from e2b import FileType, InvalidArgumentException, NotFoundException, SandboxException
from e2b.sandbox.filesystem.watch_handle import FilesystemEventType

from harness import check, raises, takes, until

@check
def files(s):
    f = s.files
    wrote = f.write("a/b/new file.txt", "hello")
    assert (wrote.name, wrote.path) == ("new file.txt", "/home/user/a/b/new file.txt"), wrote
    assert f.read("a/b/new file.txt") == "hello"
    assert bytes(f.read(wrote.path, format="bytes")) == b"hello"
    assert b"".join(f.read(wrote.path, format="stream")) == b"hello"
    every = bytes(range(256)) * 4000
    f.write("all.bin", every)
    assert bytes(f.read("all.bin", format="bytes")) == every
    f.write("stream.bin", io.BytesIO(every))
    assert bytes(f.read("stream.bin", format="bytes")) == every
    f.write("empty", "")
    assert f.read("empty") == ""
    f.write('quo"te %22 ü.txt', "q")
    assert f.read('quo"te %22 ü.txt') == "q"
    many = f.write_files([{"path": "/tmp/m/one", "data": "1"}, {"path": "m/two", "data": b"2"}])
    assert [m.path for m in many] == ["/tmp/m/one", "/home/user/m/two"]
    assert f.read("/tmp/m/one") == "1" and f.read("m/two") == "2"
    assert f.write_files([]) == []
    raises(NotFoundException, lambda: f.read("nope"), "does not exist")
    raises(InvalidArgumentException, lambda: f.read("/tmp"), "is a directory")
    raises(InvalidArgumentException, lambda: f.write("/tmp", "x"))
    assert f.write("owned.txt", "x", user="root").path == "/root/owned.txt"
    assert s.commands.run("stat -c '%U %a' 'a/b/new file.txt' a/b").stdout == "user 644\nuser 755\n"
    assert int(f.read("/proc/self/stat").split()[0]) > 0


@check
def big_file(s):
    data = os.urandom(1 << 20) * 12
    s.files.write("/tmp/big", data)
    assert bytes(s.files.read("/tmp/big", format="bytes")) == data
    s.files.remove("/tmp/big")


@check
def gzipped(s):
    if not takes(s.files.write, "gzip"):
        return
    s.files.write("z.txt", "squeeze " * 1000, gzip=True)
    assert s.files.read("z.txt") == "squeeze " * 1000
    assert s.files.read("z.txt", gzip=True) == "squeeze " * 1000


@check
def entries(s):
    f = s.files
    assert f.make_dir("d/e/f") is True and f.make_dir("d/e/f") is False
    f.write("d/one", "1")
    s.commands.run("ln -s one d/link && ln -s ../.. d/e/up && ln -s nowhere d/broken")
    names = [(e.name, e.type) for e in f.list("d")]
    assert sorted(n for n, _ in names) == ["e", "link", "one"], names
    assert dict(names)["e"] == FileType.DIR and dict(names)["one"] == FileType.FILE
    deep = sorted(e.path for e in f.list("d", depth=3))
    assert "/home/user/d/e/f" in deep and not any("up/" in p for p in deep), deep
    raises(NotFoundException, lambda: f.list("nodir"))
    raises(InvalidArgumentException, lambda: f.list("d/one"))
    info = f.get_info("d/one")
    assert (info.size, info.mode, info.permissions, info.owner, info.group) == (1, 0o644, "-rw-r--r--", "user", "user")
    assert info.type == FileType.FILE and abs((datetime.now(timezone.utc) - info.modified_time).total_seconds()) < 60
    link = f.get_info("d/link")
    assert link.symlink_target == "/home/user/d/one" and link.type == FileType.FILE
    assert f.exists("d/one") and not f.exists("d/none")
    moved = f.rename("d/one", "d/new/two")
    assert moved.path == "/home/user/d/new/two" and not f.exists("d/one")
    raises(NotFoundException, lambda: f.rename("d/one", "d/x"))
    f.remove("d")
    assert not f.exists("d")
    f.remove("d")
    assert f.get_info("/dev/null").name == "null"


@check
def metadata(s):
    if not takes(s.files.write, "metadata"):
        return
    wrote = s.files.write("meta.txt", "x", metadata={"author": "me", "Kind": "test"})
    assert wrote.metadata == {"author": "me", "kind": "test"}, wrote.metadata
    assert s.files.get_info("meta.txt").metadata == {"author": "me", "kind": "test"}
    s.files.rename("meta.txt", "meta2.txt")
    assert s.files.get_info("meta2.txt").metadata["author"] == "me"
    s.files.write("meta2.txt", "y")
    assert not s.files.get_info("meta2.txt").metadata
    raises(InvalidArgumentException, lambda: s.files.write("m", "x", metadata={"k": "v" * 5000}))


@check
def watch(s):
    kinds = FilesystemEventType
    s.files.make_dir("watched/sub")
    handle = s.files.watch_dir("watched")
    s.files.write("watched/new.txt", "x")
    got = [(e.name, e.type) for e in handle.get_new_events()]
    assert got == [("new.txt", k) for k in (kinds.CREATE, kinds.CHMOD, kinds.WRITE)], got
    s.files.write("watched/new.txt", "y")
    got = [(e.name, e.type) for e in handle.get_new_events()]
    assert got == [("new.txt", k) for k in (kinds.CHMOD, kinds.WRITE)] or len(got) <= 3, got
    s.files.rename("watched/new.txt", "watched/old.txt")
    got = [(e.name, e.type) for e in handle.get_new_events()]
    assert got == [("new.txt", kinds.RENAME), ("old.txt", kinds.CREATE)], got
    s.files.remove("watched/old.txt")
    got = [(e.name, e.type) for e in handle.get_new_events()]
    assert got == [("old.txt", kinds.REMOVE)], got
    assert handle.get_new_events() == []
    s.files.write("watched/sub/deep", "x")
    assert handle.get_new_events() == []
    handle.stop()
    raises(SandboxException, handle.get_new_events)
    deep = s.files.watch_dir("watched", recursive=True)
    s.files.write("watched/sub/deep2", "x")
    assert ("sub/deep2", kinds.CREATE) in [(e.name, e.type) for e in deep.get_new_events()]
    s.files.make_dir("watched/later")
    deep.get_new_events()
    s.files.write("watched/later/file", "x")
    assert ("later/file", kinds.WRITE) in [(e.name, e.type) for e in deep.get_new_events()]
    deep.stop()
    raises(NotFoundException, lambda: s.files.watch_dir("nodir"))
    raises(InvalidArgumentException, lambda: s.files.watch_dir("words.txt"))
    if takes(s.files.watch_dir, "include_entry"):
        told = s.files.watch_dir("watched", include_entry=True)
        s.files.write("watched/told", "12345")
        last = told.get_new_events()[-1]
        assert last.entry and last.entry.path == "/home/user/watched/told" and last.entry.size == 5, last
        told.stop()


@check
def signed_urls(s):
    def fetch(url, data=None, headers={}):
        try:
            with urllib.request.urlopen(urllib.request.Request(url, data=data, headers=headers)) as r:
                return r.status, r.read()
        except urllib.error.HTTPError as e:
            return e.code, e.read()

    s.files.write("signed.txt", "secret")
    assert fetch(s.download_url("signed.txt")) == (200, b"secret")
    assert fetch(s.download_url("signed.txt", user="root"))[0] == 404
    assert fetch(s.download_url("signed.txt", use_signature_expiration=60)) == (200, b"secret")
    late = s.download_url("signed.txt", use_signature_expiration=-10)
    assert fetch(late) == (401, b'{"code":401,"message":"signature is already expired"}'), fetch(late)
    forged = s.download_url("signed.txt").replace("signed.txt", "other.txt")
    assert fetch(forged)[0] == 401
    body = b'--b\r\nContent-Disposition: form-data; name="file"; filename="up.txt"\r\n\r\nupload\r\n--b--\r\n'
    form = {"Content-Type": "multipart/form-data; boundary=b"}
    assert fetch(s.upload_url("up/loaded.txt"), body, form)[0] == 200
    assert s.files.read("up/loaded.txt") == "upload"
    assert fetch(s.upload_url(""), body, form)[0] == 200
    assert s.files.read("up.txt") == "upload"
    assert fetch(s.upload_url("x", use_signature_expiration=-10), body, form)[0] == 401


@check
def host(s):
    s.commands.run("cd /tmp && echo served > index.html && exec python3 -m http.server 8123 --bind 127.0.0.1", background=True, timeout=0)
    name = s.get_host(8123)
    assert name.startswith(f"8123-{s.sandbox_id}.")
    url = os.environ["E2B_SANDBOX_URL"]
    ask = urllib.request.Request(url + "/index.html", headers={"Host": name})
    assert until(lambda: _get(ask)) == b"served\n"
    try:
        urllib.request.urlopen(urllib.request.Request(url, headers={"Host": s.get_host(8124)}))
        raise AssertionError("a closed port answered")
    except urllib.error.HTTPError as e:
        assert e.code == 502 and b"port is not open" in e.read()


def _get(request):
    try:
        return urllib.request.urlopen(request).read()
    except urllib.error.HTTPError:
        return b""


@check
def git(s):
    if not hasattr(s, "git"):
        return
    s.git.init("/home/user/repo", initial_branch="main")
    s.git.configure_user("A B", "a@example.com")
    s.files.write("repo/x.txt", "x")
    s.git.add("/home/user/repo")
    s.git.commit("/home/user/repo", "first")
    status = s.git.status("/home/user/repo")
    assert status.current_branch == "main" and status.is_clean, status
    s.git.create_branch("/home/user/repo", "work")
    assert "work" in s.git.branches("/home/user/repo").branches
