"""What all checks use."""

import inspect
import os
import time
from importlib.metadata import version

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
