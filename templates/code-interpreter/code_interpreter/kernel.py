"""The kernel: IPython's, with E2B's formats of results and an environment that follows the sandbox's."""

import asyncio
import codecs
import contextlib
import fcntl
import json
import os
import random
import struct
import sys
import termios
import time

import zmq
from ipykernel.iostream import OutStream
from ipykernel.ipkernel import IPythonKernel
from ipykernel.kernelapp import IPKernelApp
from IPython.core.formatters import BaseFormatter
from traitlets import ObjectName, Unicode

from code_interpreter import charts
from code_interpreter.formats import METADATA



SETTLE_MAX_S = 1.0
DATA_CELLS_MAX = 200_000


class Stream(OutStream):
    """Takes what programs write to the file descriptor, too, whole characters at a time.

    The one of ipykernel reads no more when a character's bytes come in two parts, and what a program
    wrote last may come after the end of the execution.
    """

    _at_work = False

    def _watch_pipe_fd(self):
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        while data := os.read(self._fid, 1 << 16):
            self._at_work = True
            text = decoder.decode(data)
            if text:
                self.write(text)
            self._at_work = False

    def settle(self):
        """Waits until all that was written to the descriptor by now is in the stream."""
        end = time.monotonic() + SETTLE_MAX_S
        while time.monotonic() < end:
            waiting = struct.unpack("i", fcntl.ioctl(self._fid, termios.FIONREAD, b"\0" * 4))[0]
            if not waiting and not self._at_work:
                return
            time.sleep(0.001)


class Kernel(IPythonKernel):
    """Runs one execution after the other."""

    _untouched = True
    _sandbox = {}

    async def execute_request(self, stream, ident, parent):
        mine = (parent.get("metadata") or {}).get(METADATA) or {}
        if self._untouched:
            # This memory may be a copy that others have as well.
            self._untouched = False
            random.seed()
            if "numpy" in sys.modules:
                sys.modules["numpy"].random.seed()
        if "sandbox" in mine:
            for name in self._sandbox.keys() - mine["sandbox"].keys():
                os.environ.pop(name, None)
            self._sandbox = mine["sandbox"]
            os.environ.update(self._sandbox)
        with environment(mine.get("run") or {}):
            await super().execute_request(stream, ident, parent)

    async def do_execute(self, *args, **kwargs):
        reply = await super().do_execute(*args, **kwargs)
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, Stream):
                stream.settle()
        return reply


@contextlib.contextmanager
def environment(variables):
    """Sets variables and puts them back as they were."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


class DataFormatter(BaseFormatter):
    """The columns of a data frame, as a mapping of names to lists."""

    format_type = Unicode("e2b/data")
    print_method = ObjectName("_repr_e2b_data_")
    _return_type = dict

    def __call__(self, thing):
        pandas = sys.modules.get("pandas")
        try:
            if pandas and isinstance(thing, pandas.DataFrame) and thing.size <= DATA_CELLS_MAX:
                return charts.plain(thing.to_dict(orient="list"))
        except Exception:  # It is an extra: a result without it is better than none.
            return None
        return None


class ChartFormatter(BaseFormatter):
    """What a figure shows, in numbers."""

    format_type = Unicode("e2b/chart")
    print_method = ObjectName("_repr_e2b_chart_")
    _return_type = dict

    def __call__(self, thing):
        figures = sys.modules.get("matplotlib.figure")
        try:
            return charts.describe(thing) if figures and isinstance(thing, figures.Figure) else None
        except Exception:  # As above.
            return None


def run(connection):
    """Runs a kernel until it is told to end."""
    asyncio.set_event_loop(asyncio.new_event_loop())
    directory = os.path.dirname(connection["ip"])
    file = os.path.join(directory, "connection.json")
    ipython = os.path.join(directory, "ipython")
    os.mkdir(ipython)
    with open(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as out:
        json.dump(connection, out)
    app = IPKernelApp.instance(
        kernel_class=Kernel,
        outstream_class=f"{__name__}.Stream",
        parent_handle=os.getppid(),  # it ends when its parent does
    )
    words = [
        "-f",
        file,
        "--quiet",
        "--log-level=CRITICAL",
        "--HistoryManager.enabled=False",
        "--ipython-dir=" + ipython,
    ]
    if "matplotlib" in sys.modules:
        words.append("--matplotlib=inline")
    app.initialize(words)
    # Who reads slowly slows the kernel down; nothing is dropped.
    publisher = app.iopub_thread
    publisher.schedule(lambda: publisher.socket.setsockopt(zmq.XPUB_NODROP, 1))
    shell = app.shell
    for formatter in (DataFormatter, ChartFormatter):
        one = formatter(parent=shell.display_formatter)
        shell.display_formatter.formatters[one.format_type] = one
    app.start()
