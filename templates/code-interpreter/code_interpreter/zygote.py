"""A process that has imported all that kernels need, and forks one for each line that it reads.

A kernel starts in the time of a fork, and its libraries are in memory once, however many there are.
Lines in: {"number", "connection", "cwd"}. Lines out: {"event": "started", "number", "pid"},
{"event": "failed", "number", "why"}, {"event": "ended", "number", "pid"}.
"""

import importlib
import io
import json
import os
import select
import signal

# Imported for all kernels when they are installed; a kernel's names are not affected by it.
LIBRARIES = ("numpy", "pandas", "matplotlib.pyplot", "PIL.Image")


def main():
    commands, events = os.dup(0), os.dup(1)
    # Whatever a library prints must not be read as an event.
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(nothing, 1)
    os.environ["PYDEVD_DISABLE_FILE_VALIDATION"] = "1"  # else it warns of a debugger nobody uses
    os.environ["MPLBACKEND"] = "module://matplotlib_inline.backend_inline"
    from code_interpreter import kernel

    for library in LIBRARIES:
        try:
            importlib.import_module(library)
        except ImportError:
            continue
    draw()
    awake, wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(wake)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    ours = (commands, events, nothing, awake, wake)
    children = {}
    buffer = b""

    def tell(**event):
        os.write(events, json.dumps(event).encode() + b"\n")

    def start(command):
        try:
            pid = os.fork()
        except OSError as e:
            tell(event="failed", number=command["number"], why=str(e))
            return
        if pid == 0:
            become(kernel, command, ours)
        children[pid] = command["number"]
        tell(event="started", number=command["number"], pid=pid)

    def reap():
        for pid in list(children):
            if os.waitpid(pid, os.WNOHANG)[0]:
                tell(event="ended", number=children.pop(pid), pid=pid)

    while True:
        readable, _, _ = select.select([commands, awake], [], [])
        if awake in readable:
            os.read(awake, 4096)
        if commands in readable:
            data = os.read(commands, 1 << 16)
            if not data:
                return  # The server is gone; kernels notice that this process is.
            *lines, buffer = (buffer + data).split(b"\n")
            for line in lines:
                start(json.loads(line))
        reap()


def draw():
    """Draws a figure for nobody: fonts are looked up at the first, which takes seconds."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return
    figure = Figure()
    figure.subplots().plot([0, 1])
    figure.savefig(io.BytesIO(), format="png")


def become(kernel, command, parents):
    """The rest of a forked process's life."""
    status = 1
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for descriptor in parents:
            os.close(descriptor)
        os.setsid()
        # An interrupt that comes before the kernel looks for it must not end it.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        os.chdir(command["cwd"])
        kernel.run(command["connection"])
        status = 0
    finally:
        os._exit(status)


if __name__ == "__main__":
    main()
