"""Drives a running service over TLS with E2B's published Python SDK, as a program does that sets
nothing but E2B_DOMAIN and E2B_API_KEY: every name below the domain is asked for.

Reads those two, SSL_CERT_FILE for the authority, and PROXY: where names are led to this machine.
"""

import os
import ssl
import sys
import threading
import urllib.error
import urllib.request
from importlib.metadata import version

from e2b import Sandbox, TimeoutException

from harness import RUN, raises, until

PROXY = os.environ["PROXY"]
OPENER = urllib.request.build_opener(
    urllib.request.ProxyHandler({"https": PROXY}),
    urllib.request.HTTPSHandler(context=ssl.create_default_context(cafile=os.environ["SSL_CERT_FILE"])),
)


def ask(url):
    try:
        with OPENER.open(url) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as e:
        return e.code, e.read()


def main():
    with Sandbox.create(timeout=300, metadata={"run": RUN}, proxy=PROXY) as box:
        assert box.commands.run("echo over tls").stdout == "over tls\n"
        big = os.urandom(3 << 20)
        box.files.write("big", big)
        assert bytes(box.files.read("big", format="bytes")) == big
        box.files.write("/tmp/www/index.html", "served\n")
        box.commands.run("cd /tmp/www && exec python3 -m http.server 8123 --bind 127.0.0.1", background=True, timeout=0)
        host = box.get_host(8123)
        assert host == f"8123-{box.sandbox_id}.{os.environ['E2B_DOMAIN']}", host
        until(lambda: ask(f"https://{host}/index.html") == (200, b"served\n"), 30)
        status, body = ask(f"https://{box.get_host(8124)}/")
        assert status == 502 and b"port is not open" in body, body
        box.files.write("signed.txt", "secret")
        assert ask(box.download_url("signed.txt")) == (200, b"secret")
        handle = box.commands.run("sleep 1000", background=True, timeout=0)
        threading.Timer(0.5, lambda: Sandbox.kill(box.sandbox_id, proxy=PROXY)).start()
        raises(TimeoutException, handle.wait)
        assert not box.is_running()
        assert ask(f"https://{host}/")[0] == 502
    print(f"python e2b {version('e2b')} over TLS: 0 failed")


if __name__ == "__main__":
    sys.exit(main())
