"""Commands and terminals."""

import threading
import time

import e2b
from e2b import (
    AuthenticationException,
    CommandExitException,
    InvalidArgumentException,
    NotFoundException,
    SandboxException,
    TimeoutException,
)

from harness import check, raises, until

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
