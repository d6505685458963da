"""The HTTP interface."""

import asyncio
import json

from tornado.iostream import StreamClosedError
from tornado.web import Application, RequestHandler

from code_interpreter import formats
from code_interpreter.contexts import Refused

BODY_MAX_BYTES = 16 << 20
# A client that is gone shows when something is sent to it.
KEEPALIVE_S = 1


class Handler(RequestHandler):
    """Errors are texts, as E2B's are."""

    def initialize(self, contexts):
        self.contexts = contexts

    def set_default_headers(self):
        self.clear_header("Server")

    def write_error(self, status_code, **kwargs):
        cause = kwargs.get("exc_info", (None, None, None))[1]
        if isinstance(cause, Refused):
            self.set_status(cause.status)
            text = str(cause)
        else:
            text = self._reason
        self.set_header("Content-Type", "text/plain; charset=utf-8")
        self.finish(text)

    def log_exception(self, kind, value, trace):
        if not isinstance(value, (Refused, StreamClosedError)):
            super().log_exception(kind, value, trace)

    def body(self):
        try:
            body = json.loads(self.request.body or b"{}")
        except ValueError:
            raise Refused(400, "The body is no JSON") from None
        if not isinstance(body, dict):
            raise Refused(400, "The body is no JSON object")
        return body


def encodable(value):
    """Whether a text can be told to a kernel: JSON can hold halves of characters."""
    try:
        value.encode()
        return True
    except UnicodeEncodeError:
        return False


def text(body, name):
    """A text, or None where it is left out, null or empty."""
    value = body.get(name)
    if value is not None and not isinstance(value, str):
        raise Refused(422, f"{name} is no text")
    if value and ("\0" in value or not encodable(value)):
        raise Refused(422, f"{name} holds what can't be in a name")
    return value or None


def environment(body):
    variables = body.get("env_vars") or {}
    if not isinstance(variables, dict):
        raise Refused(422, "env_vars is no object")
    for name, value in variables.items():
        if not name or "=" in name or not isinstance(value, str) or "\0" in name + value or not encodable(name + value):
            raise Refused(422, "env_vars maps names of variables to texts")
    return variables


class Health(Handler):
    def get(self):
        self.finish("ok")


class Execute(Handler):
    _run = None

    async def post(self):
        body = self.body()
        if not isinstance(body.get("code"), str):
            raise Refused(422, "code is missing")
        if not encodable(body["code"]):
            raise Refused(422, "code holds half a character")
        context, language = text(body, "context_id"), text(body, "language")
        if context and language:
            raise Refused(400, "Only one of context_id or language can be provided")
        variables = environment(body)
        chosen = self.contexts.get(context) if context else await self.contexts.default(language)
        if self.request.connection.stream.closed():
            return
        self._run = chosen.submit(body["code"], variables)
        self.set_header("Content-Type", "application/x-ndjson")
        self.set_header("Cache-Control", "no-store")
        try:
            await self._stream(self._run)
        except StreamClosedError:
            pass  # There is nobody left to tell.
        finally:
            self._run.abandon()

    async def _stream(self, run):
        await self.flush()
        coming = asyncio.create_task(run.items.get())
        try:
            while True:
                await asyncio.wait({coming}, timeout=KEEPALIVE_S)
                if not coming.done():
                    await self._say({"type": "keepalive"})
                    continue
                item = coming.result()
                if item is None:
                    await self._say({"type": "end_of_execution"})
                    return
                await self._say(item)
                coming = asyncio.create_task(run.items.get())
        finally:
            coming.cancel()

    async def _say(self, item):
        self.write(formats.line(item))
        await self.flush()

    def on_connection_close(self):
        if self._run:
            self._run.abandon()


class All(Handler):
    def get(self):
        self.set_header("Content-Type", "application/json")
        self.finish(json.dumps([context.view() for context in self.contexts.all()]))

    async def post(self):
        body = self.body()
        context = await self.contexts.create(text(body, "language"), text(body, "cwd"))
        self.finish(context.view())


class One(Handler):
    async def delete(self, name):
        await self.contexts.remove(name)
        self.set_status(204)
        self.finish()


class Restart(Handler):
    async def post(self, name):
        await self.contexts.get(name).restart()
        self.set_status(204)
        self.finish()


def application(contexts):
    mine = {"contexts": contexts}
    return Application(
        [
            (r"/health", Health, mine),
            (r"/execute", Execute, mine),
            (r"/contexts", All, mine),
            (r"/contexts/([^/]{1,100})", One, mine),
            (r"/contexts/([^/]{1,100})/restart", Restart, mine),
        ],
        log_function=lambda handler: None,
    )
