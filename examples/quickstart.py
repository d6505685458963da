#!/usr/bin/env python3
"""A sandbox's whole life in one file, with nothing but Python's standard library.

    ./space serve &                    # once; makes the key that is read below
    python3 examples/quickstart.py     # prints what a command in a fresh microVM said

It finds a service on this machine by itself. For another one set SPACE_URL and SPACE_API_KEY.
"""

import base64
import json
import os
import pathlib
import sys
import urllib.error
import urllib.request
import uuid

URL = os.environ.get("SPACE_URL", "http://127.0.0.1:8700")


def api_key():
    """The key: from the environment, else the one that the service of this machine made at its first start."""
    if "SPACE_API_KEY" in os.environ:
        return os.environ["SPACE_API_KEY"]
    share = pathlib.Path(os.environ.get("XDG_DATA_HOME", pathlib.Path.home() / ".local/share"))
    default = pathlib.Path("/var/lib/space") if os.geteuid() == 0 else share / "space"
    return (pathlib.Path(os.environ.get("SPACE_DATA_DIR", default)) / "api-key").read_text().strip()


def call(method, path, body=None):
    """One call of the control plane. Every POST carries a key, so that it is safe to send it again."""
    headers = {"Authorization": f"Bearer {api_key()}", "Content-Type": "application/json"}
    if method == "POST":
        headers["Idempotency-Key"] = str(uuid.uuid4())
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(URL + path, data=data, headers=headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.loads(answer.read() or b"{}")
    except urllib.error.HTTPError as error:
        problem = json.load(error)  # application/problem+json: what happened, why, what to do
        sys.exit(f"{method} {path}: {problem['detail']} {problem.get('remedy', '')}")


def finished(operation):
    """Waits for an operation. Each call returns as soon as it is over, or after 30 seconds."""
    while operation["state"] in ("pending", "running"):
        operation = call("GET", f"/v1/operations/{operation['id']}?wait=30s")
    if operation["state"] != "succeeded":
        sys.exit(f"{operation['kind']} failed: {operation['error']['detail']}")
    return operation


def events(url, token):
    """The session's server-sent events: pairs of a name and its data."""
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}", "Accept": "text/event-stream"})
    name, data = "message", []
    with urllib.request.urlopen(request) as stream:
        for line in stream:
            field, _, value = line.decode().rstrip("\r\n").partition(": ")
            if field == "event":
                name = value
            elif field == "data":
                data.append(value)
            elif not field and data:  # an empty line ends an event
                yield name, json.loads("\n".join(data))
                name, data = "message", []


def content(data):
    """Output as bytes: text where it is UTF-8, else base64."""
    return base64.b64decode(data["base64"]) if "base64" in data else data["text"].encode()


def main():
    # 1. A sandbox. Creating takes a moment, so the answer is an operation that can be waited for.
    creation = finished(call("POST", "/v1/sandboxes", {"template": "base", "timeout": "10m"}))
    sandbox = creation["sandbox_id"]
    try:
        # 2. A session is one command. Nothing runs yet, so no output can be missed.
        program = "import platform; print('hello from', platform.release()); print(6 * 7)"
        ticket = call("POST", f"/v1/sandboxes/{sandbox}/sessions", {"argv": ["python3", "-c", program]})

        # 3. Attaching starts it. The token opens this one session, so it can be handed to others.
        status = 1
        for name, data in events(ticket["attach_url"], ticket["attach_token"]):
            if name == "stdout":
                sys.stdout.buffer.write(content(data))
            elif name == "stderr":
                sys.stderr.buffer.write(content(data))
            elif name == "error":
                sys.exit(f"the session was lost: {data['detail']}")
            elif name == "exit":
                status = data["code"] if data.get("code") is not None else 128 + data["signal"]
        sys.stdout.flush()
        return status
    finally:
        # 4. Delete it; also when something above failed.
        finished(call("DELETE", f"/v1/sandboxes/{sandbox}"))


if __name__ == "__main__":
    sys.exit(main())
