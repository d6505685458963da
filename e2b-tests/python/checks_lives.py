"""The asynchronous SDK; pauses, copies and ends."""

import asyncio
import datetime
import os
import threading
import urllib.error
import urllib.request

import e2b
from e2b import AsyncSandbox, NotFoundException, Sandbox, SandboxException, SandboxQuery, TimeoutException

from harness import RUN, check, raises, takes, until

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
def pause_of_the_disk_alone(s):
    boot = "cat /proc/sys/kernel/random/boot_id"
    with Sandbox.create(timeout=300, metadata={"run": RUN, "d": "1"}, envs={"FROM_CREATE": "1"}) as box:
        box.files.write("kept", "kept")
        first = box.commands.run(boot).stdout
        handle = box.commands.run("sleep 1000", background=True, timeout=0)
        box.pause(keep_memory=False)
        assert not box.is_running() and box.get_info().state.value == "paused"
        again = box.connect(timeout=300)
        assert again.files.read("kept") == "kept"
        second = again.commands.run(boot).stdout
        assert second != first
        assert handle.pid not in [p.pid for p in again.commands.list()]
        assert again.commands.run("echo $FROM_CREATE; cat /etc/machine-id; hostname").stdout.startswith("1\n")
        # Booted once, it pauses with its memory as any other.
        again.files.write("kept", "more")
        handle = again.commands.run("sleep 1000", background=True, timeout=0)
        again.pause()
        if hasattr(e2b, "SandboxOnResume"):
            again = again.connect(on_resume="reboot", timeout=300)
            assert again.commands.run(boot).stdout != second
            assert again.files.read("kept") == "more"
            raises(SandboxException, lambda: again.create_snapshot(mode="filesystem"), "filesystem-only")
            assert again.pause(strict=True) is not False
        else:
            again = again.connect(timeout=300)
            assert again.commands.run(boot).stdout == second
            assert handle.pid in [p.pid for p in again.commands.list()]


@check
def lifecycle_of_the_disk_alone(s):
    with Sandbox.create(
        timeout=300,
        metadata={"run": RUN, "l": "2"},
        lifecycle={"on_timeout": {"action": "pause", "keep_memory": False}},
    ) as auto:
        auto.files.write("kept", "kept")
        auto.set_timeout(1)
        until(lambda: auto.get_info().state.value == "paused", 30)
        raises(SandboxException, lambda: auto.commands.run("true"))
        assert auto.connect(timeout=300).files.read("kept") == "kept"


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
        until(lambda: auto.get_info().state.value == "paused", 30)
        # Traffic wakes it, and it lives as long as it was made for, five minutes at least.
        assert auto.commands.run("echo awake").stdout == "awake\n"
        info = auto.get_info()
        assert info.state.value == "running"
        left = (info.end_at - datetime.datetime.now(datetime.timezone.utc)).total_seconds()
        assert 200 < left <= 300, left


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
