"""What all checks use."""

import inspect
import os
import time
import traceback
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


def drive(box, wanted):
    """Makes the checks, all or those named, and prints a line for each. Returns how many failed."""
    failed = 0
    for work in CHECKS:
        if wanted and work.__name__ not in wanted:
            continue
        started = time.monotonic()
        try:
            work(box)
            print(f"ok {work.__name__} ({time.monotonic() - started:.1f} s)", flush=True)
        except Exception as e:
            failed += 1
            where = traceback.extract_tb(e.__traceback__)
            mine = [f for f in where if f.name == work.__name__][-1]
            print(
                f"FAILED {work.__name__}: {type(e).__name__}: {e}"
                f" ({os.path.basename(mine.filename)}:{mine.lineno}: {mine.line})",
                flush=True,
            )
            if os.environ.get("TRACE"):
                traceback.print_exc()
    return failed
