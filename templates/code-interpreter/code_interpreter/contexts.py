"""Contexts: each a kernel with a working directory, and the runs that wait for it."""

import asyncio
import glob
import os
import secrets
import shutil
import socket
import tempfile
import time
import uuid

import zmq
import zmq.asyncio
from jupyter_client.session import Session

from code_interpreter import formats
from code_interpreter.formats import METADATA

CONTEXTS_MAX = 32
WAITING_MAX = 100
ITEMS_MAX = 64
START_MAX_S = 120
PROBE_S = 0.3
INTERRUPT_EVERY_S = 5
LAST_WORDS_S = 0.2
HOME = os.path.expanduser("~")
ENVIRONMENT_FILE = "/run/space/environment"
FOLDER_PREFIX = "code-interpreter-"


class Refused(Exception):
    """What a client asked can't be done; it is told so with this status."""

    def __init__(self, status, text):
        super().__init__(text)
        self.status = status


def sandbox_environment():
    """What commands of this sandbox have in their environment now."""
    variables = {"E2B_SANDBOX": "true", "E2B_SANDBOX_ID": socket.gethostname()}
    try:
        with open(ENVIRONMENT_FILE, "rb") as file:
            for word in file.read().split(b"\0"):
                name, is_there, value = word.partition(b"=")
                if is_there:
                    variables[os.fsdecode(name)] = os.fsdecode(value)
    except OSError:
        pass
    return variables


def sweep():
    """Removes what a server that was killed left."""
    for folder in glob.glob(os.path.join(glob.escape(tempfile.gettempdir()), FOLDER_PREFIX + "*")):
        shutil.rmtree(folder, ignore_errors=True)


class Run:
    """Code that is to be run, and what came of it so far."""

    def __init__(self, code, environment):
        self.code = code
        self.environment = environment
        self.message = ""
        self.items = asyncio.Queue(ITEMS_MAX)
        self.finished = asyncio.Event()
        self.abandoned = asyncio.Event()

    async def put(self, item):
        """Waits for a reader who is behind."""
        if not self.abandoned.is_set():
            await self.items.put(item)

    async def end(self, error=None):
        if error:
            await self.put({"type": "error", "name": error[0], "value": error[1], "traceback": ""})
        await self.put(None)

    def abandon(self):
        """Nobody reads any more."""
        self.abandoned.set()
        while not self.items.empty():
            self.items.get_nowait()


class Kernel:
    """A kernel process and the sockets to it."""

    def __init__(self, child, directory, session, shell, iopub):
        self.child = child
        self._directory = directory
        self._session = session
        self._shell = shell
        self._iopub = iopub
        self._run = None
        self._told = None
        self._tasks = []

    @staticmethod
    async def start(nursery, cwd):
        directory = tempfile.mkdtemp(prefix=FOLDER_PREFIX)
        key = secrets.token_hex(32)
        connection = {
            "transport": "ipc",
            "ip": os.path.join(directory, "kernel"),
            "key": key,
            "signature_scheme": "hmac-sha256",
            "shell_port": 1,
            "iopub_port": 2,
            "stdin_port": 3,
            "control_port": 4,
            "hb_port": 5,
        }
        sockets = []
        child = None
        try:
            child = await nursery.start(connection, cwd)
            for kind, port in ((zmq.DEALER, 1), (zmq.SUB, 2)):
                sockets.append(zmq.asyncio.Context.instance().socket(kind))
                sockets[-1].linger = 0
                if kind == zmq.SUB:
                    sockets[-1].subscribe(b"")
                sockets[-1].connect(f"ipc://{connection['ip']}-{port}")
            kernel = Kernel(child, directory, Session(key=key.encode()), *sockets)
            await asyncio.wait_for(kernel._answers(), START_MAX_S)
        except BaseException as e:
            for one in sockets:
                one.close()
            if child:
                child.kill()
            shutil.rmtree(directory, ignore_errors=True)
            if isinstance(e, (OSError, asyncio.TimeoutError)):
                raise Refused(500, f"The kernel doesn't start: {e or 'it took too long'}") from e
            raise
        kernel._tasks = [asyncio.create_task(kernel._listen()), asyncio.create_task(kernel._discard())]
        return kernel

    async def _send(self, kind, content, metadata=None):
        message = self._session.msg(kind, content=content, metadata=metadata)
        await self._shell.send_multipart(self._session.serialize(message))
        return message["header"]["msg_id"]

    async def _answers(self):
        """Returns when what it publishes arrives here: a subscription takes a while to be one."""
        while not self.child.ended.is_set():
            await self._send("kernel_info_request", {})
            if await self._iopub.poll(PROBE_S * 1000):
                return
        raise OSError("it ended at once")

    async def _listen(self):
        while True:
            parts = await self._iopub.recv_multipart()
            try:
                _, parts = self._session.feed_identities(parts)
                message = self._session.deserialize(parts)
                kind, content = message["msg_type"], message["content"]
                parent = message["parent_header"].get("msg_id")
                idle = kind == "status" and content.get("execution_state") == "idle"
                item = formats.item(kind, content, time.time_ns())
            except Exception:  # Code in the kernel may write what it wants to the socket.
                continue
            run = self._run
            if run is None or parent != run.message:
                continue
            if idle:
                run.finished.set()
            elif item:
                await run.put(item)

    async def _discard(self):
        while True:
            await self._shell.recv_multipart()

    async def execute(self, run):
        """Returns when it is done. Whether the kernel lived that long is told by `child.ended`."""
        environment = sandbox_environment()
        mine = {"run": run.environment}
        if environment != self._told:
            mine["sandbox"] = self._told = environment
        content = {
            "code": run.code,
            "silent": False,
            "store_history": True,
            "user_expressions": {},
            "allow_stdin": False,
            # The next run is asked for after this one: there is nothing to stop.
            "stop_on_error": False,
        }
        # No answer can come before the message has been told: it is handled by the same loop.
        self._run = run
        message = self._session.msg("execute_request", content=content, metadata={METADATA: mine})
        run.message = message["header"]["msg_id"]
        await self._shell.send_multipart(self._session.serialize(message))
        waits = {asyncio.create_task(e.wait()) for e in (run.finished, self.child.ended)}
        gone = asyncio.create_task(run.abandoned.wait())
        try:
            await asyncio.wait(waits | {gone}, return_when=asyncio.FIRST_COMPLETED)
            while not (run.finished.is_set() or self.child.ended.is_set()):
                self.child.interrupt()
                await asyncio.wait(waits, timeout=INTERRUPT_EVERY_S, return_when=asyncio.FIRST_COMPLETED)
            if not run.finished.is_set():
                await asyncio.wait(waits, timeout=LAST_WORDS_S)
        finally:
            self._run = None
            for task in waits | {gone}:
                task.cancel()

    async def close(self):
        self.child.kill()
        await self.child.ended.wait()
        for task in self._tasks:
            task.cancel()
        self._shell.close()
        self._iopub.close()
        shutil.rmtree(self._directory, ignore_errors=True)


class Context:
    """A kernel, made anew when it died, and its queue."""

    def __init__(self, nursery, language, cwd):
        self.id = str(uuid.uuid4())
        self.language = language
        self.cwd = cwd
        self._nursery = nursery
        self._kernel = None
        self._kernel_lock = asyncio.Lock()
        self._runs = asyncio.Queue(WAITING_MAX)
        self._current = None
        self._worker = None
        self._ended_by = None

    async def open(self):
        self._kernel = await Kernel.start(self._nursery, self.cwd)
        self._worker = asyncio.create_task(self._work())
        return self

    def submit(self, code, environment):
        run = Run(code, environment)
        try:
            self._runs.put_nowait(run)
        except asyncio.QueueFull:
            raise Refused(429, f"{WAITING_MAX} executions wait for this context already") from None
        return run

    async def _work(self):
        while True:
            run = await self._runs.get()
            if run.abandoned.is_set():
                continue
            self._current = run
            try:
                kernel = await self._living()
                self._ended_by = None
                await kernel.execute(run)
                if run.finished.is_set():
                    await run.end()
                else:
                    await run.end(self._ended_by or ("KernelDied", "The kernel ended; its state is lost"))
            except Exception as e:  # One that can't be run must not keep the others from it.
                await run.end(("KernelDied", str(e)))
            finally:
                self._current = None

    async def _living(self):
        async with self._kernel_lock:
            if self._kernel is None or self._kernel.child.ended.is_set():
                if self._kernel:
                    await self._kernel.close()
                    self._kernel = None
                self._kernel = await Kernel.start(self._nursery, self.cwd)
            return self._kernel

    async def restart(self):
        async with self._kernel_lock:
            self._ended_by = ("ContextRestarting", "Context was restarted")
            if self._kernel:
                await self._kernel.close()
                self._kernel = None
            self._kernel = await Kernel.start(self._nursery, self.cwd)

    async def close(self):
        self._worker.cancel()
        unserved = [self._current] if self._current else []
        while not self._runs.empty():
            unserved.append(self._runs.get_nowait())
        async with self._kernel_lock:
            if self._kernel:
                await self._kernel.close()
        for run in unserved:
            await asyncio.wait(
                {asyncio.create_task(run.end(("ContextRemoved", "Context was removed")))}, timeout=LAST_WORDS_S
            )

    def view(self):
        return {"id": self.id, "language": self.language, "cwd": self.cwd}


class Contexts:
    """All of them, by id; for each language one that is used when none is named."""

    LANGUAGES = ("python",)

    def __init__(self, nursery):
        self._nursery = nursery
        self._all = {}
        self._defaults = {}
        self._opening = 0
        self._default_lock = asyncio.Lock()

    def all(self):
        return list(self._all.values())

    def get(self, name):
        context = self._all.get(name)
        if context is None:
            raise Refused(404, f"Context {name} not found")
        return context

    async def default(self, language):
        language = self.language(language)
        async with self._default_lock:
            if self._defaults.get(language) not in self._all:
                context = await self.create(language, HOME)
                self._defaults[language] = context.id
            return self._all[self._defaults[language]]

    @classmethod
    def language(cls, name):
        known = (name or "python").strip().lower()
        if known not in cls.LANGUAGES:
            raise Refused(400, f"There is no kernel for '{name[:40]}'; there is: {', '.join(cls.LANGUAGES)}")
        return known

    async def create(self, language, cwd):
        language = self.language(language)
        cwd = cwd or HOME
        if not os.path.isdir(cwd) or not os.access(cwd, os.X_OK):
            raise Refused(400, "Failed to set working directory: there is no such directory")
        if len(self._all) + self._opening >= CONTEXTS_MAX:
            raise Refused(429, f"There are {CONTEXTS_MAX} contexts already: remove one")
        self._opening += 1
        try:
            context = await Context(self._nursery, language, os.path.abspath(cwd)).open()
        finally:
            self._opening -= 1
        self._all[context.id] = context
        return context

    async def remove(self, name):
        context = self.get(name)
        del self._all[name]
        await context.close()
