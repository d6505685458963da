"""Starts the server: the nursery first, then the default context, then the port."""

import asyncio
import os
import sys

from tornado.httpserver import HTTPServer

from code_interpreter.contexts import Contexts, sweep
from code_interpreter.nursery import Nursery
from code_interpreter.web import BODY_MAX_BYTES, application

PORT = 49999


async def main():
    sweep()
    nursery = await Nursery.open()
    contexts = Contexts(nursery)
    await contexts.default("python")
    server = HTTPServer(application(contexts), max_body_size=BODY_MAX_BYTES, idle_connection_timeout=3600)
    server.listen(int(os.environ.get("CODE_INTERPRETER_PORT", PORT)), address="0.0.0.0")
    # Without the nursery there are no kernels: who started this starts it anew.
    await nursery.closed.wait()
    return 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
