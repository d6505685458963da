"""Drives a running service with E2B's published Python SDK.

Reads E2B_API_KEY, E2B_API_URL and E2B_SANDBOX_URL as the SDK does. Prints one line for each check,
"ok NAME" or "FAILED NAME: why", and ends with 1 if any failed.
"""

import asyncio
import inspect
import io
import os
import sys
import threading
import time
import traceback
import urllib.error
import urllib.request
from datetime import datetime, timedelta, timezone
from importlib.metadata import version

import e2b
from e2b import (
    AsyncSandbox,
    AuthenticationException,
    CommandExitException,
    FileType,
    InvalidArgumentException,
    NotFoundException,
    Sandbox,
    SandboxException,
    SandboxQuery,
    TimeoutException,
)
from e2b.sandbox.filesystem.watch_handle import FilesystemEventType

CHECKS = []
RUN = "py-" + version("e2b") + "-" + str(os.getpid())


def check(work):
    CHECKS.append(work)
    return work


def raises(kind, work, *words):
    try:
        got = work()
    except kind as e:
        for word in words:
            assert word in str(e), f"{word!r} is not in {e!r}"
        return e
    raise AssertionError(f"no {kind.__name__}, but {got!r}")


def until(work, seconds=10):
    end = time.monotonic() + seconds
    while True:
        got = work()
        if got:
            return got
        assert time.monotonic() < end, f"{work} stayed {got!r}"
        time.sleep(0.05)


def takes(function, name):
    return name in inspect.signature(function).parameters


# -- control plane


@check
def info(s):
    got = s.get_info()
    assert got.sandbox_id == s.sandbox_id and got.state.value == "running"
    assert got.metadata == {"run": RUN, "a b": "c&d=ü%"}, got.metadata
    assert got.cpu_count >= 1 and got.memory_mb >= 128
    assert got.started_at < got.end_at
    assert got.template_id and got.name == "base"
    assert s.is_running()
    other = Sandbox.connect(s.sandbox_id)
    assert other.commands.run("echo again").stdout == "again\n"


@check
def lists(s):
    mine = SandboxQuery(metadata={"a b": "c&d=ü%", "run": RUN})
    page = Sandbox.list(query=mine)
    items = page.next_items()
    assert [i.sandbox_id for i in items] == [s.sandbox_id] and not page.has_next
    assert Sandbox.list(query=SandboxQuery(metadata={"run": RUN + "x"})).next_items() == []
    template = s.get_info().template_id
    assert template == items[0].template_id


@check
def pages(s):
    with Sandbox.create(metadata={"run": RUN, "second": "1"}) as second:
        seen = []
        page = Sandbox.list(query=SandboxQuery(metadata={"run": RUN}), limit=1)
        while page.has_next:
            got = page.next_items()
            assert len(got) <= 1
            seen += [i.sandbox_id for i in got]
        assert seen == [second.sandbox_id, s.sandbox_id], seen
    assert second.kill() is False
    assert not second.is_running()


@check
def timeouts(s):
    s.set_timeout(600)
    end = s.get_info().end_at
    assert timedelta(seconds=580) < end - datetime.now(timezone.utc) < timedelta(seconds=601)
    Sandbox.connect(s.sandbox_id, timeout=60)
    assert s.get_info().end_at >= end, "connect shortened the life"
    s.set_timeout(300)
    assert s.get_info().end_at < end, "set_timeout did not shorten the life"
    raises(NotFoundException, lambda: Sandbox.set_timeout("inotthere0000", 10))


@check
def errors(s):
    raises(SandboxException, lambda: Sandbox.create("no-such-template"), "404")
    raises(AuthenticationException, lambda: Sandbox.create(api_key="e2b_" + "0" * 40))
    raises(SandboxException, lambda: Sandbox.create(timeout=-1), "400")
    raises(NotFoundException, lambda: Sandbox.connect("inotthere0000"))
    assert Sandbox.kill("inotthere0000") is False


@check
def network(s):
    raises(SandboxException, lambda: Sandbox.create(network={"allow_out": ["1.1.1.1"], "deny_out": ["0.0.0.0/0"]}), "501")
    with Sandbox.create(allow_internet_access=False, metadata={"run": RUN, "n": "1"}) as closed:
        assert closed.is_running()


@check
def metrics(s):
    got = until(s.get_metrics)
    last = got[-1]
    assert last.cpu_count >= 1 and last.mem_total > 0 and last.disk_total > 0 and last.mem_used > 0
    old = datetime.now(timezone.utc) - timedelta(days=2)
    assert s.get_metrics(start=old, end=old + timedelta(hours=1)) == []


# -- commands


@check
def run(s):
    got = s.commands.run("echo out; echo err >&2; printf tail")
    assert (got.stdout, got.stderr, got.exit_code, got.error) == ("out\ntail", "err\n", 0, None), got
    assert s.commands.run("true").stdout == ""
    e = raises(CommandExitException, lambda: s.commands.run("echo bad >&2; exit 3"))
    assert e.exit_code == 3 and e.stderr == "bad\n" and e.error == "exit status 3", e.error
    outs, errs = [], []
    s.commands.run("echo a; echo b >&2", on_stdout=outs.append, on_stderr=errs.append)
    assert "".join(outs) == "a\n" and "".join(errs) == "b\n"
    assert s.commands.run("cat").stdout == ""


@check
def where_and_who(s):
    assert s.commands.run("pwd").stdout == "/home/user\n"
    assert s.commands.run("pwd", cwd="/tmp").stdout == "/tmp\n"
    assert s.commands.run("whoami").stdout == "user\n"
    assert s.commands.run("whoami; pwd", user="root").stdout == "root\n/home/user\n"
    raises(AuthenticationException, lambda: s.commands.run("true", user="nobody-here"), "invalid username")
    raises(InvalidArgumentException, lambda: s.commands.run("true", cwd="/no/such"), "/no/such")
    assert s.commands.run("echo $FROM_CREATE-$FROM_CALL", envs={"FROM_CALL": "2"}).stdout == "1-2\n"
    assert s.commands.run("echo $FROM_CREATE", envs={"FROM_CREATE": "x"}).stdout == "x\n"
    assert s.commands.run("echo $E2B_SANDBOX $E2B_SANDBOX_ID").stdout == f"true {s.sandbox_id}\n"


@check
def text(s):
    words = "åäö 漢字 🎉" * 3000
    s.files.write("words.txt", words)
    assert s.commands.run("cat words.txt").stdout == words


@check
def large_output(s):
    got = s.commands.run("head -c 3000000 /dev/zero | tr '\\0' x")
    assert len(got.stdout) == 3_000_000


@check
def background(s):
    handle = s.commands.run("echo one; sleep 0.3; echo two; exit 4", background=True)
    assert handle.pid > 0
    e = raises(CommandExitException, handle.wait)
    assert e.exit_code == 4 and e.stdout == "one\ntwo\n"
    handle = s.commands.run("sleep 100", background=True)
    assert handle.pid in [p.pid for p in s.commands.list()]
    assert handle.kill() is True
    e = raises(CommandExitException, handle.wait)
    assert e.exit_code == -1 and e.error == "signal: killed", e.error
    raises(CommandExitException, lambda: s.commands.run(f"kill -0 {handle.pid}"))
    assert s.commands.kill(handle.pid) is False
    assert s.commands.kill(123456) is False
    assert handle.pid not in [p.pid for p in s.commands.list()]


@check
def listing(s):
    handle = s.commands.run("sleep 60", background=True, envs={"X": "y"}, cwd="/tmp")
    one = [p for p in s.commands.list() if p.pid == handle.pid][0]
    assert one.cmd == "/bin/bash" and one.args == ["-l", "-c", "sleep 60"] and one.cwd == "/tmp", one
    assert one.envs.get("X") == "y"
    handle.kill()


@check
def connects(s):
    first = s.commands.run("sleep 0.5; echo late; sleep 0.2; exit 0", background=True)
    first.disconnect()
    second = s.commands.connect(first.pid)
    assert second.pid == first.pid
    assert second.wait().stdout == "late\n"
    # The exit of what has just ended is still told.
    third = s.commands.connect(first.pid)
    assert third.wait().exit_code == 0
    raises(NotFoundException, lambda: s.commands.connect(654321), "not found")


@check
def stdin(s):
    handle = s.commands.run("cat", background=True, stdin=True)
    s.commands.send_stdin(handle.pid, "hello ")
    s.commands.send_stdin(handle.pid, "world\n")
    out = []
    s.commands.close_stdin(handle.pid)
    assert handle.wait(on_stdout=out.append).stdout == "hello world\n"
    handle = s.commands.run("sleep 30", background=True)
    raises(SandboxException, lambda: s.commands.send_stdin(handle.pid, "x"))
    handle.kill()


@check
def stream_input(s):
    if not hasattr(s.commands, "stream_input"):
        return
    handle = s.commands.run("wc -c", background=True, stdin=True)
    s.commands.stream_input(handle.pid, ("x" * 1000 for _ in range(10)))
    s.commands.close_stdin(handle.pid)
    assert handle.wait().stdout.strip() == "10000"


@check
def command_timeout(s):
    started = time.monotonic()
    raises(TimeoutException, lambda: s.commands.run("sleep 33", timeout=1))
    assert time.monotonic() - started < 5
    until(lambda: "sleep 33" not in s.commands.run("ps -eo args || true").stdout)
    handle = s.commands.run("sleep 1; echo done", background=True, timeout=0)
    assert handle.wait().stdout == "done\n"


# -- terminals


@check
def terminal(s):
    shown = []
    got = threading.Event()
    size = e2b.PtySize(rows=24, cols=80)
    handle = s.pty.create(size, envs={"ABC": "123"})

    def read():
        try:
            handle.wait(on_pty=lambda data: shown.append(data))
        except Exception as e:  # the end of a killed shell
            shown.append(("end", e))
        got.set()

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    seen = lambda: b"".join(d for d in shown if isinstance(d, bytes)).decode(errors="replace")
    s.pty.send_stdin(handle.pid, b"stty size; echo $ABC-$TERM-$LANG\n")
    until(lambda: "24 80" in seen() and "123-xterm-256color-C.UTF-8" in seen())
    s.pty.resize(handle.pid, e2b.PtySize(rows=40, cols=132))
    s.pty.send_stdin(handle.pid, b"stty size\n")
    until(lambda: "40 132" in seen())
    assert s.pty.kill(handle.pid) is True
    assert got.wait(10)
    assert s.pty.kill(handle.pid) is False
    other = s.pty.create(size)
    s.pty.send_stdin(other.pid, b"exit 0\n")
    assert other.wait().exit_code == 0


# -- files


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


# -- asynchronous SDK


@check
def asynchronous(s):
    async def work():
        a = await AsyncSandbox.connect(s.sandbox_id)
        assert (await a.commands.run("echo async")).stdout == "async\n"
        many = await asyncio.gather(*(a.commands.run(f"echo {i}") for i in range(10)))
        assert [m.stdout for m in many] == [f"{i}\n" for i in range(10)]
        await a.files.make_dir("awatch")
        events = []
        ended = []
        handle = await a.files.watch_dir("awatch", on_event=events.append, on_exit=lambda *e: ended.append(e))
        await a.files.write("awatch/one", "1")
        for _ in range(100):
            if len(events) >= 3:
                break
            await asyncio.sleep(0.05)
        await asyncio.sleep(0.3)
        got = [(e.name, e.type.name) for e in events]
        assert got == [("one", "CREATE"), ("one", "CHMOD"), ("one", "WRITE")], got
        await handle.stop()
        out = []
        pty = await a.pty.create(e2b.PtySize(rows=20, cols=60), on_data=out.append)
        await a.pty.send_stdin(pty.pid, b"echo $((6*7)); exit\n")
        assert (await pty.wait()).exit_code == 0
        assert b"42" in b"".join(out)

    asyncio.run(work())


# -- the end of lives


@check
def pause(s):
    handle = s.commands.run("sleep 1000", background=True, timeout=0)
    s.files.write("kept", "kept")
    token = getattr(s, "_envd_access_token", None)
    assert s.pause() is not False
    assert not s.is_running()
    assert s.get_info().state.value == "paused"
    assert s.pause() is False
    paused = Sandbox.list(query=SandboxQuery(metadata={"run": RUN}, state=[e2b.SandboxState.PAUSED])).next_items()
    assert [p.sandbox_id for p in paused] == [s.sandbox_id]
    raises(SandboxException, lambda: s.commands.run("true"))
    again = s.connect(timeout=300)
    assert again.is_running() and again.files.read("kept") == "kept"
    assert handle.pid in [p.pid for p in again.commands.list()]
    assert again.commands.run("echo $FROM_CREATE").stdout == "1\n"
    assert token == getattr(again, "_envd_access_token", None)
    assert again.commands.kill(handle.pid)


@check
def snapshots(s):
    if not hasattr(s, "create_snapshot"):
        return
    s.files.write("state", "before")
    snapshot = s.create_snapshot()
    s.files.write("state", "after")
    copy = Sandbox.create(snapshot.snapshot_id, metadata={"run": RUN, "copy": "1"})
    try:
        assert copy.files.read("state") == "before" and s.files.read("state") == "after"
        assert snapshot.snapshot_id in [x.snapshot_id for x in Sandbox.list_snapshots(sandbox_id=s.sandbox_id).next_items()]
    finally:
        copy.kill()
    assert Sandbox.delete_snapshot(snapshot.snapshot_id) is True
    assert Sandbox.delete_snapshot(snapshot.snapshot_id) is False


@check
def forks(s):
    if not hasattr(s, "fork"):
        return
    s.files.write("state", "shared")
    copies = s.fork(count=2)
    try:
        assert len(copies) == 2
        assert len({c.sandbox_id for c in copies} | {s.sandbox_id}) == 3
        copies[0].files.write("state", "own")
        assert s.files.read("state") == "shared" and copies[1].files.read("state") == "shared"
        assert copies[0].commands.run("echo $E2B_SANDBOX_ID").stdout == copies[0].sandbox_id + "\n"
    finally:
        for copy in copies:
            copy.kill()


@check
def idempotency(s):
    if not takes(Sandbox.create, "idempotency_key"):
        return
    key = RUN.replace(".", "-") + "-key"
    one = Sandbox.create(metadata={"run": RUN, "i": "1"}, idempotency_key=key)
    two = Sandbox.create(metadata={"run": RUN, "i": "1"}, idempotency_key=key)
    assert one.sandbox_id == two.sandbox_id
    one.kill()


@check
def lifecycle(s):
    with Sandbox.create(
        timeout=300,
        metadata={"run": RUN, "l": "1"},
        lifecycle={"on_timeout": "pause", "auto_resume": True},
    ) as auto:
        life = auto.get_info().lifecycle
        assert life["on_timeout"].value == "pause" and life["auto_resume"] is True, life
        auto.set_timeout(1)
        until(lambda: auto.get_info().state.value == "paused", 20)
        # Traffic wakes it.
        assert auto.commands.run("echo awake").stdout == "awake\n"
        assert auto.get_info().state.value == "running"


@check
def secured(s):
    url = os.environ["E2B_SANDBOX_URL"]
    route = {"E2b-Sandbox-Id": s.sandbox_id, "E2b-Sandbox-Port": "49983"}
    for path, headers, words in (
        ("/files?path=x", {}, b"missing signature query parameter"),
        ("/files?path=x", {"X-Access-Token": "wrong"}, b"does not match"),
        ("/envs", {}, b"unauthorized access"),
    ):
        try:
            urllib.request.urlopen(urllib.request.Request(url + path, headers=route | headers))
            raise AssertionError(path + " let me in")
        except urllib.error.HTTPError as e:
            body = e.read()
            assert e.code == 401 and words in body, body


@check
def killed_while_running(s):
    victim = Sandbox.create(metadata={"run": RUN, "v": "1"})
    handle = victim.commands.run("sleep 1000", background=True, timeout=0)
    threading.Timer(0.5, lambda: Sandbox.kill(victim.sandbox_id)).start()
    raises(TimeoutException, handle.wait)
    assert not victim.is_running()
    raises(NotFoundException, lambda: victim.get_info())


@check
def expired_while_running(s):
    victim = Sandbox.create(metadata={"run": RUN, "v": "2"})
    victim.set_timeout(1)
    raises(TimeoutException, lambda: victim.commands.run("sleep 1000", timeout=0))
    assert not victim.is_running()


def main():
    wanted = sys.argv[1:]
    failed = 0
    began = time.monotonic()
    box = Sandbox.create(timeout=300, metadata={"run": RUN, "a b": "c&d=ü%"}, envs={"FROM_CREATE": "1"})
    try:
        for work in CHECKS:
            if wanted and work.__name__ not in wanted:
                continue
            started = time.monotonic()
            try:
                work(box)
                print(f"ok {work.__name__} ({time.monotonic() - started:.1f} s)", flush=True)
            except Exception as e:
                failed += 1
                where = traceback.extract_tb(e.__traceback__)
                mine = [f for f in where if f.filename == __file__][-1]
                print(f"FAILED {work.__name__}: {type(e).__name__}: {e} (line {mine.lineno}: {mine.line})", flush=True)
                if os.environ.get("TRACE"):
                    traceback.print_exc()
    finally:
        for item in Sandbox.list(query=SandboxQuery(metadata={"run": RUN})).next_items():
            Sandbox.kill(item.sandbox_id)
    print(f"python e2b {version('e2b')}: {failed} failed, {time.monotonic() - began:.0f} s")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
