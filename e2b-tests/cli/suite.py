"""Drives a running service with E2B's published command line (npm @e2b/cli).

Reads E2B_API_KEY, E2B_API_URL and E2B_SANDBOX_URL as it does, CLI, the program, NODE, what runs it,
and HOME, where it keeps its own. Prints one line for each check, "ok NAME" or "FAILED NAME: why", and
ends with 1 if any failed.
"""

import json
import os
import pty
import re
import select
import subprocess
import sys
import time

PROGRAM = [os.environ["NODE"], os.environ["CLI"]]
ESCAPES = re.compile(rb"\x1b(\[[0-9;?]*[ -/]*[@-~]|\][^\x07]*\x07|[@-Z\\-_])")
CHECKS = []


def check(work):
    CHECKS.append(work)
    return work


def e2b(*args, status=0, stdin=""):
    done = subprocess.run(PROGRAM + list(args), input=stdin, capture_output=True, text=True, timeout=90)
    assert done.returncode == status, f"{args} gave {done.returncode}: {done.stdout}{done.stderr}"
    return done.stdout


def listed(*args):
    return json.loads(e2b("sandbox", "list", "--format", "json", *args))


class Terminal:
    """The program on a terminal of its own."""

    def __init__(self, *args):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execvp(PROGRAM[0], PROGRAM + list(args))
        self.seen = b""

    def expect(self, text, seconds=60):
        end = time.monotonic() + seconds
        while text not in ESCAPES.sub(b"", self.seen):
            left = end - time.monotonic()
            assert left > 0, f"{text!r} did not come, but {self.seen!r}"
            if select.select([self.fd], [], [], left)[0]:
                try:
                    part = os.read(self.fd, 65536)
                except OSError:
                    part = b""
                assert part, f"it ended before {text!r} came, with {self.seen!r}"
                self.seen += part

    def type(self, text):
        self.seen = b""
        os.write(self.fd, text)

    def ended(self):
        """Reads to the end and gives the status."""
        while True:
            try:
                if not os.read(self.fd, 65536):
                    break
            except OSError:
                break
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def converse(terminal):
    """A little work in a sandbox's shell, then its end."""
    terminal.expect(b"$ ")
    terminal.type(b"echo $((6*7)) $(whoami) $(tty)\n")
    terminal.expect(b"42 user /dev/pts/")
    terminal.type(b"exit\n")
    return terminal.ended()


@check
def create_detached(state):
    out = e2b("sandbox", "create", "--detach", "--timeout", "300", "base")
    state["id"] = re.search(r"\bi[a-z0-9]{19}\b", out).group()


@check
def listing(state):
    (mine,) = [s for s in listed() if s["sandboxId"] == state["id"]]
    assert mine["state"] == "running" and mine["name"] == "base", mine
    assert state["id"] in e2b("sandbox", "list")
    assert [s["sandboxId"] for s in listed("--template", "base", "--limit", "1", "--order", "desc")] == [state["id"]]
    assert listed("--metadata", "no=such") == []
    assert state["id"] in e2b("sandbox", "info", state["id"])


@check
def executing(state):
    assert e2b("sandbox", "exec", state["id"], "echo", "hi there") == "hi there\n"
    assert e2b("sandbox", "exec", "--cwd", "/tmp", "--env", "A=1", "--user", "root", state["id"], "sh", "-c", "pwd; echo $A; id -un") == "/tmp\n1\nroot\n"
    e2b("sandbox", "exec", state["id"], "sh", "-c", "exit 7", status=7)
    assert e2b("sandbox", "exec", state["id"], "cat", stdin="piped") == "piped"
    e2b("sandbox", "exec", "--background", state["id"], "sh", "-c", "echo done > /home/user/background")
    end = time.monotonic() + 20
    while e2b("sandbox", "exec", state["id"], "sh", "-c", "cat /home/user/background || true") != "done\n":
        assert time.monotonic() < end, "the background command did nothing"


@check
def connecting(state):
    assert converse(Terminal("sandbox", "connect", state["id"])) == 0
    assert state["id"] in [s["sandboxId"] for s in listed()]


@check
def creating_with_a_terminal(state):
    terminal = Terminal("sandbox", "create", "base")
    before = {state["id"]}
    terminal.expect(b"$ ")
    (made,) = {s["sandboxId"] for s in listed()} - before
    assert converse(terminal) == 0
    end = time.monotonic() + 30
    while made in [s["sandboxId"] for s in listed()]:
        assert time.monotonic() < end, "the sandbox of the terminal lives on"
        time.sleep(0.2)


@check
def pausing(state):
    e2b("sandbox", "pause", state["id"])
    assert [s["state"] for s in listed("--state", "paused") if s["sandboxId"] == state["id"]] == ["paused"]
    e2b("sandbox", "resume", state["id"])
    assert e2b("sandbox", "exec", state["id"], "cat", "/home/user/background") == "done\n"


@check
def looking(state):
    assert "process" in e2b("sandbox", "logs", state["id"])
    e2b("sandbox", "metrics", state["id"])
    assert "base" in e2b("template", "list")


@check
def killing(state):
    e2b("sandbox", "kill", state["id"])
    assert state["id"] not in [s["sandboxId"] for s in listed()]
    one = re.search(r"\bi[a-z0-9]{19}\b", e2b("sandbox", "create", "--detach", "base")).group()
    e2b("sandbox", "kill", "--all")
    assert one not in [s["sandboxId"] for s in listed()]


def main():
    wanted, failed, state = sys.argv[1:], 0, {}
    for work in CHECKS:
        if wanted and work.__name__ not in wanted:
            continue
        started = time.monotonic()
        try:
            work(state)
            print(f"ok {work.__name__} ({time.monotonic() - started:.1f} s)", flush=True)
        except Exception as e:
            failed += 1
            print(f"FAILED {work.__name__}: {type(e).__name__}: {e}", flush=True)
    print(f"npm @e2b/cli {e2b('--version').strip()}: {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
