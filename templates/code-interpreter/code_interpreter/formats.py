"""A kernel's messages as the items that clients read."""

import json
import math

# Where an execution's message says what is meant for this project's kernel.
METADATA = "code_interpreter"

NAMES = {
    "text/plain": "text",
    "text/html": "html",
    "text/markdown": "markdown",
    "image/svg+xml": "svg",
    "image/png": "png",
    "image/jpeg": "jpeg",
    "application/pdf": "pdf",
    "text/latex": "latex",
    "application/json": "json",
    "application/javascript": "javascript",
    "e2b/data": "data",
    "e2b/chart": "chart",
}


def item(kind, content, nanoseconds):
    """What a message means for a client; None when nothing.

    nanoseconds: when it came, since 1970.
    """
    if kind == "stream":
        name = "stderr" if content["name"] == "stderr" else "stdout"
        return {"type": name, "text": str(content["text"]), "timestamp": nanoseconds}
    if kind in ("execute_result", "display_data"):
        return result(content["data"], kind == "execute_result")
    if kind == "error":
        return {
            "type": "error",
            "name": str(content["ename"]),
            "value": str(content["evalue"]),
            "traceback": "\n".join(str(line) for line in content["traceback"]),
        }
    if kind == "execute_input":
        return {"type": "number_of_executions", "execution_count": content["execution_count"]}
    return None


def result(data, main):
    found = {"type": "result", "is_main_result": main}
    extra = {}
    for mime, value in data.items():
        if value is None:
            continue
        if mime in NAMES:
            found[NAMES[mime]] = value
        else:
            extra[mime] = value
    text = found.get("text")
    if isinstance(text, str) and len(text) >= 2 and text[0] == text[-1] == "'":
        found["text"] = text[1:-1]
    if extra:
        found["extra"] = extra
    return found


def line(value):
    """One line of strict JSON in ASCII: a character is never split between two packets."""
    try:
        text = json.dumps(value, allow_nan=False)
    except ValueError:
        text = json.dumps(_finite(value), allow_nan=False)
    return text.encode() + b"\n"


def _finite(value):
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {key: _finite(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(one) for one in value]
    return value
