"""Drives a running service with E2B's published code interpreter SDK for Python.

Needs the template code-interpreter-v1. Reads the same variables as suite.py and prints the same lines.
"""

import asyncio
import base64
import os
import sys
import time
import urllib.error
import urllib.request
from importlib.metadata import version

from e2b import NotFoundException, SandboxException, SandboxQuery, TimeoutException
from e2b_code_interpreter import AsyncSandbox, Sandbox

from harness import RUN, check, drive, raises


def printed(execution):
    """A kernel hands its output on now and then, not line by line."""
    return "".join(execution.logs.stdout), "".join(execution.logs.stderr)


PNG = b"\x89PNG\r\n\x1a\n"


@check
def results(s):
    got = s.run_code("x = 41\nx + 1")
    assert got.text == "42" and got.error is None and got.logs.stdout == [], got
    assert got.execution_count >= 1
    again = s.run_code("'a ' + str(x)")
    assert again.text == "a 41" and again.execution_count == got.execution_count + 1, again
    assert s.run_code("y = 1").results == []
    got = s.run_code("from IPython.display import *\ndisplay(HTML('<b>h</b>'), Markdown('m'), JSON({'k': [1]}))\nLatex('l')")
    assert [r.html for r in got.results] == ["<b>h</b>", None, None, None], got.results
    assert got.results[1].markdown == "m" and got.results[2].json == {"k": [1]}
    assert got.results[3].latex == "l" and got.results[3].is_main_result and not got.results[0].is_main_result


@check
def streams(s):
    seen = []
    got = s.run_code(
        "import sys, time\nprint('one ä')\ntime.sleep(2)\nprint('two', file=sys.stderr)",
        on_stdout=lambda m: seen.append((m.line, m.error, time.monotonic())),
        on_stderr=lambda m: seen.append((m.line, m.error, time.monotonic())),
    )
    assert printed(got) == ("one ä\n", "two\n"), got.logs
    assert "".join(x[0] for x in seen) == "one ä\ntwo\n", seen
    assert not seen[0][1] and seen[-1][1] and seen[-1][2] - seen[0][2] > 1, "the output came at the end"
    got = s.run_code("import subprocess\nsubprocess.run('echo from a program; echo and to >&2; uname', shell=True).returncode")
    assert printed(got) == ("from a program\nLinux\n", "and to\n") and got.text == "0", got
    got = s.run_code("for i in range(20000): print(i)")
    assert printed(got)[0] == "".join(f"{i}\n" for i in range(20000))


@check
def errors(s):
    told = []
    got = s.run_code("print('before')\n1 / 0", on_error=told.append)
    assert got.error.name == "ZeroDivisionError" and got.error.value == "division by zero", got.error
    assert "1" in got.error.traceback and told[0].name == got.error.name and printed(got)[0] == "before\n"
    assert s.run_code("x +").error.name == "SyntaxError"
    assert s.run_code("input()").error.name == "StdinNotImplementedError"
    assert s.run_code("x").text == "41"


@check
def figures(s):
    found = []
    got = s.run_code(
        "import matplotlib.pyplot as plt\nplt.plot([1, 2], [3, 4], label='l')\nplt.xlabel('time (s)')\nplt.show()",
        on_result=found.append,
    )
    assert got.error is None, got.error
    assert base64.b64decode(got.results[0].png).startswith(PNG) and found == got.results
    chart = got.results[0].chart
    assert chart.type.value == "line" and chart.x_unit == "s" and chart.elements[0].points == [(1, 3), (2, 4)], chart.to_dict()
    got = s.run_code("import pandas\npandas.DataFrame({'a': [1, 2], 'b': [0.5, None]})")
    assert "<table" in got.results[0].html and got.results[0].data == {"a": [1, 2], "b": [0.5, None]}, got.results[0]


@check
def charts(s):
    drawn = """
import matplotlib.pyplot as plt, numpy
plt.scatter([1, 2], [3, 4]); plt.yscale('log'); plt.show()
plt.barh(['a', 'b'], [1, 2]); plt.xlabel('mass [kg]'); plt.show()
at = numpy.arange(2)
plt.bar(at - .2, [1, 2], .4, label='g'); plt.bar(at + .2, [3, 4], .4, label='h'); plt.xticks(at, ['a', 'b']); plt.show()
plt.pie([1, 3], labels=['a', 'b']); plt.show()
plt.boxplot([[1, 2, 3, 4, 5, 20], [2, 3, 4]]); plt.xticks([1, 2], ['a', 'b']); plt.show()
figure, (left, right) = plt.subplots(1, 2); left.plot(['x', 'y'], [1, 2]); right.bar(['q'], [2]); figure.suptitle('both'); plt.show()
plt.imshow([[1, 2]]); plt.show()
"""
    got = s.run_code(drawn)
    assert got.error is None, got.error
    scatter, lying, bars, pie, box, both, unknown = [r.chart for r in got.results]
    assert scatter.type.value == "scatter" and scatter.y_scale.value == "log" and scatter.elements[0].points == [(1, 3), (2, 4)]
    assert [(b.label, b.value) for b in lying.elements] == [("a", 1), ("b", 2)] and lying.y_unit == "kg", lying.to_dict()
    grouped = [(b.group, b.label, b.value) for b in bars.elements]
    assert grouped == [("g", "a", 1), ("g", "b", 2), ("h", "a", 3), ("h", "b", 4)], grouped
    assert [(p.label, p.angle) for p in pie.elements] == [("a", 90), ("b", 270)], pie.to_dict()
    first = box.elements[0]
    assert (first.label, first.min, first.median, first.max, first.outliers) == ("a", 1, 3.5, 5, [20]), box.to_dict()
    assert both.type.value == "superchart" and both.title == "both"
    assert [c.type.value for c in both.elements] == ["line", "bar"] and both.elements[0].x_scale.value == "categorical"
    assert unknown.type.value == "unknown" and got.results[-1].png


@check
def environments(s):
    code = "import os; [os.environ.get(k) for k in ('FROM_CREATE', 'E2B_SANDBOX', 'E2B_SANDBOX_ID', 'MINE')]"
    assert s.run_code(code, envs={"MINE": "it's"}).text == f"""['1', 'true', '{s.sandbox_id}', "it's"]"""
    assert s.run_code(code, envs={"FROM_CREATE": "2"}).text == f"['2', 'true', '{s.sandbox_id}', None]"
    assert s.run_code(code).text == f"['1', 'true', '{s.sandbox_id}', None]"
    assert s.run_code("import getpass, os\ngetpass.getuser(), os.getcwd()").text == "('user', '/home/user')"


@check
def contexts(s):
    before = s.list_code_contexts()
    assert [(c.language, c.cwd) for c in before] == [("python", "/home/user")]
    s.run_code("x = 1")
    c = s.create_code_context(cwd="/tmp")
    assert (c.language, c.cwd) == ("python", "/tmp")
    assert {x.id for x in s.list_code_contexts()} == {before[0].id, c.id}
    assert s.run_code("import os\nx = 2\nos.getcwd()", context=c).text == "/tmp"
    assert s.run_code("x").text == "1" and s.run_code("x", context=c).text == "2"
    s.restart_code_context(c)
    assert s.run_code("x", context=c).error.name == "NameError" and s.run_code("x").text == "1"
    died = s.run_code("import os\nos._exit(1)", context=c)
    assert died.error.name == "KernelDied", died
    assert s.run_code("os = 5\nos", context=c).text == "5"
    s.remove_code_context(c)
    raises(NotFoundException, lambda: s.run_code("1", context=c), c.id)
    raises(NotFoundException, lambda: s.remove_code_context(c.id))
    raises(SandboxException, lambda: s.create_code_context(language="cobol"), "400", "cobol")
    raises(SandboxException, lambda: s.create_code_context(cwd="/nowhere"), "400")
    raises(SandboxException, lambda: s.run_code("1", language="cobol"), "400", "cobol")
    assert s.run_code("x", language="python").text == "1"


@check
def time_limits(s):
    s.run_code("kept = 'kept'")
    raises(TimeoutException, lambda: s.run_code("import time\nwhile True: time.sleep(0.1)", timeout=3))
    # The abandoned code is interrupted, and what comes next is not lost.
    assert s.run_code("kept").text == "kept"


@check
def asynchronous(s):
    async def work():
        a = await AsyncSandbox.connect(s.sandbox_id)
        seen = []

        async def note(message):
            seen.append(message.line)

        many = await asyncio.gather(*(a.run_code(f"print({i})\n{i}", on_stdout=note) for i in range(5)))
        assert [m.text for m in many] == [str(i) for i in range(5)]
        assert [printed(m)[0] for m in many] == [f"{i}\n" for i in range(5)], many
        assert sorted("".join(seen).split()) == [str(i) for i in range(5)], seen

    asyncio.run(work())


@check
def sleeps(s):
    s.run_code("import random\nrandom.seed(1)\nkept = random.random()")
    s.pause()
    again = s.connect(timeout=300)
    assert again.run_code("kept == random.Random(1).random()").text == "True"
    assert printed(again.run_code("print('awake')"))[0] == "awake\n"


@check
def clones(s):
    """What comes from one snapshot shares no randomness; a port can be closed to others."""
    draw = "import random, numpy\nrandom.random(), numpy.random.rand()"
    with Sandbox.create(timeout=300, metadata={"run": RUN}, network={"allow_public_traffic": False}) as other:
        with Sandbox.create(timeout=300, metadata={"run": RUN}) as third:
            drawn = [eval(box.run_code(draw).text) for box in (other, third)]
            assert drawn[0][0] != drawn[1][0] and drawn[0][1] != drawn[1][1], drawn
        url = os.environ["E2B_SANDBOX_URL"] + "/contexts"
        route = {"E2b-Sandbox-Id": other.sandbox_id, "E2b-Sandbox-Port": "49999"}
        try:
            urllib.request.urlopen(urllib.request.Request(url, headers=route))
            raise AssertionError("let in without a token")
        except urllib.error.HTTPError as e:
            assert e.code == 403, e
        other.kill()
        raises(TimeoutException, lambda: other.run_code("1"))
    if hasattr(s, "fork"):
        s.run_code("import os\nkept = 5")
        copy = s.fork()[0]
        assert copy.run_code("kept, os.environ['E2B_SANDBOX_ID']").text == f"(5, '{copy.sandbox_id}')"
        copy.kill()


def main():
    began = time.monotonic()
    box = Sandbox.create(timeout=300, metadata={"run": RUN}, envs={"FROM_CREATE": "1"}, request_timeout=240)
    try:
        failed = drive(box, sys.argv[1:])
    finally:
        for item in Sandbox.list(query=SandboxQuery(metadata={"run": RUN})).next_items():
            Sandbox.kill(item.sandbox_id)
    print(f"python e2b-code-interpreter {version('e2b-code-interpreter')}: {failed} failed, {time.monotonic() - began:.0f} s")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
