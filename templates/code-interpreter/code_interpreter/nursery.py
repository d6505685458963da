"""The server's side of the process that forks kernels."""

import asyncio
import json
import os
import signal
import sys

LINE_MAX_BYTES = 8 << 20


class Child:
    """A forked kernel process."""

    def __init__(self):
        self.pid = 0
        self.ended = asyncio.Event()

    def interrupt(self):
        self._signal(os.kill, signal.SIGINT)

    def kill(self):
        """Ends it and what it started, as far as that stayed in its process group."""
        self._signal(os.killpg, signal.SIGKILL)

    def _signal(self, send, number):
        # The zygote reaps a process before it tells of its end, so for an instant the number may be free.
        if self.pid and not self.ended.is_set():
            try:
                send(self.pid, number)
            except ProcessLookupError:
                pass


class Nursery:
    """Starts kernels in a process that has imported what they need."""

    def __init__(self, process):
        self._process = process
        self._children = {}
        self._started = {}
        self._numbers = iter(range(1, 1 << 62))
        self.closed = asyncio.Event()

    @staticmethod
    async def open():
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "code_interpreter.zygote",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=LINE_MAX_BYTES,
        )
        nursery = Nursery(process)
        nursery._task = asyncio.create_task(nursery._listen())
        return nursery

    async def start(self, connection, cwd):
        """Forks a kernel. OSError when that can't be done."""
        if self.closed.is_set():
            raise OSError("the process that makes kernels is gone")
        number = str(next(self._numbers))
        child = Child()
        self._children[number] = child
        self._started[number] = asyncio.get_running_loop().create_future()
        line = json.dumps({"number": number, "connection": connection, "cwd": cwd})
        self._process.stdin.write(line.encode() + b"\n")
        await self._process.stdin.drain()
        started = self._started[number]
        try:
            # Whoever waits may be cancelled; the fork is under way all the same.
            child.pid = await asyncio.shield(started)
        except asyncio.CancelledError:
            started.add_done_callback(lambda future: self._unwanted(child, future))
            raise
        return child

    @staticmethod
    def _unwanted(child, started):
        if started.exception() is None:
            child.pid = started.result()
            child.kill()

    async def _listen(self):
        try:
            while line := await self._process.stdout.readline():
                self._heard(json.loads(line))
        finally:
            self.closed.set()
            for child in self._children.values():
                child.ended.set()
            for future in self._started.values():
                future.set_exception(OSError("the process that makes kernels is gone"))

    def _heard(self, event):
        number = event["number"]
        if event["event"] == "started":
            self._started.pop(number).set_result(event["pid"])
        elif event["event"] == "failed":
            self._children.pop(number)
            self._started.pop(number).set_exception(OSError(event["why"]))
        elif event["event"] == "ended":
            self._children.pop(number).ended.set()
