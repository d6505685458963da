"""Drives a running service with E2B's published Python SDK.

Reads E2B_API_KEY, E2B_API_URL and E2B_SANDBOX_URL as the SDK does. Prints one line for each check,
"ok NAME" or "FAILED NAME: why", and ends with 1 if any failed.
"""

import sys
import time
from importlib.metadata import version

from e2b import Sandbox, SandboxQuery

import checks_commands  # noqa: F401
import checks_control  # noqa: F401
import checks_files  # noqa: F401
import checks_lives  # noqa: F401
from harness import RUN, drive


def main():
    wanted = sys.argv[1:]
    began = time.monotonic()
    box = Sandbox.create(timeout=300, metadata={"run": RUN, "a b": "c&d=ü%"}, envs={"FROM_CREATE": "1"})
    try:
        failed = drive(box, wanted)
    finally:
        for item in Sandbox.list(query=SandboxQuery(metadata={"run": RUN})).next_items():
            Sandbox.kill(item.sandbox_id)
    print(f"python e2b {version('e2b')}: {failed} failed, {time.monotonic() - began:.0f} s")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
