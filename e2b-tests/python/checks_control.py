"""Sandboxes over the control plane."""

import os
import pathlib
import tempfile
import urllib.request
from datetime import datetime, timedelta, timezone

import e2b
from e2b import AuthenticationException, NotFoundException, Sandbox, SandboxException, SandboxQuery

from harness import RUN, check, raises, until

@check
def template_build(s):
    if not hasattr(e2b, "Template"):
        return
    name = "built-" + RUN.replace(".", "-").replace("_", "-").lower()
    with tempfile.TemporaryDirectory() as context:
        pathlib.Path(context, "app").mkdir()
        pathlib.Path(context, "app", "run.sh").write_text("#!/bin/sh\necho from the file\n")
        pathlib.Path(context, "note.txt").write_text("a note\n")
        template = (
            e2b.Template(file_context_path=context)
            .from_template("base")
            .set_envs({"GREETING": "hi"})
            .set_envs({"GREETING": "$GREETING there"})
            .set_workdir("/home/user/work")
            .copy("app", "/opt/app")
            .copy("note.txt", "copied/")
            .run_cmd("id -un > who; pwd > where; cat copied/note.txt > noted")
            .run_cmd("mkdir -p /opt/bin && printf '#!/bin/sh\\necho tool\\n' > /opt/bin/tool && chmod 755 /opt/bin/tool", user="root")
            .set_start_cmd("exec python3 -m http.server 8400 --directory /home/user/work", "curl -sf http://127.0.0.1:8400/who")
        )
        lines = []
        e2b.Template.build(template, name, cpu_count=1, memory_mb=512, on_build_logs=lambda entry: lines.append(entry.message))
    assert lines, "the build said nothing"
    try:
        with Sandbox.create(name, metadata={"run": RUN, "t": "1"}) as box:
            out = box.commands.run("cat who where noted; echo $GREETING; /opt/bin/tool; sh /opt/app/run.sh; curl -sf http://127.0.0.1:8400/who").stdout
            assert out == "user\n/home/user/work\na note\nhi there\ntool\nfrom the file\nuser\n", out
        assert e2b.Template.exists(name)
        raises(
            e2b.BuildException,
            lambda: e2b.Template.build(e2b.Template().from_template("base").run_cmd("exit 3"), name + "-bad"),
        )
        raises(e2b.BuildException, lambda: e2b.Template.build(e2b.Template().from_image("alpine:3"), name + "-bad"), "can't be built upon")
    finally:
        urllib.request.urlopen(
            urllib.request.Request(
                os.environ["E2B_API_URL"] + "/templates/" + name, method="DELETE", headers={"X-API-KEY": os.environ["E2B_API_KEY"]}
            )
        )


@check
def info(s):
    got = s.get_info()
    assert got.sandbox_id == s.sandbox_id and got.state.value == "running"
    assert got.metadata == {"run": RUN, "a b": "c&d=ü%"}, got.metadata
    assert got.cpu_count >= 1 and got.memory_mb >= 128
    assert got.started_at < got.end_at
    assert got.template_id and got.name == "base"
    assert s.is_running()
    other = Sandbox.connect(s.sandbox_id)
    assert other.commands.run("echo again").stdout == "again\n"


@check
def lists(s):
    mine = SandboxQuery(metadata={"a b": "c&d=ü%", "run": RUN})
    page = Sandbox.list(query=mine)
    items = page.next_items()
    assert [i.sandbox_id for i in items] == [s.sandbox_id] and not page.has_next
    assert Sandbox.list(query=SandboxQuery(metadata={"run": RUN + "x"})).next_items() == []
    template = s.get_info().template_id
    assert template == items[0].template_id


@check
def pages(s):
    with Sandbox.create(metadata={"run": RUN, "second": "1"}) as second:
        seen = []
        page = Sandbox.list(query=SandboxQuery(metadata={"run": RUN}), limit=1)
        while page.has_next:
            got = page.next_items()
            assert len(got) <= 1
            seen += [i.sandbox_id for i in got]
        assert seen == [second.sandbox_id, s.sandbox_id], seen
    assert second.kill() is False
    assert not second.is_running()


@check
def timeouts(s):
    s.set_timeout(600)
    end = s.get_info().end_at
    assert timedelta(seconds=580) < end - datetime.now(timezone.utc) < timedelta(seconds=601)
    Sandbox.connect(s.sandbox_id, timeout=60)
    assert s.get_info().end_at >= end, "connect shortened the life"
    s.set_timeout(300)
    assert s.get_info().end_at < end, "set_timeout did not shorten the life"
    raises(NotFoundException, lambda: Sandbox.set_timeout("inotthere0000", 10))


@check
def errors(s):
    raises(SandboxException, lambda: Sandbox.create("no-such-template"), "404")
    raises(AuthenticationException, lambda: Sandbox.create(api_key="e2b_" + "0" * 40))
    raises(SandboxException, lambda: Sandbox.create(timeout=-1), "400")
    raises(NotFoundException, lambda: Sandbox.connect("inotthere0000"))
    assert Sandbox.kill("inotthere0000") is False


@check
def network(s):
    raises(SandboxException, lambda: Sandbox.create(network={"allow_out": ["1.1.1.1"], "deny_out": ["0.0.0.0/0"]}), "501")
    with Sandbox.create(allow_internet_access=False, metadata={"run": RUN, "n": "1"}) as closed:
        assert closed.is_running()


@check
def metrics(s):
    got = until(s.get_metrics)
    last = got[-1]
    assert last.cpu_count >= 1 and last.mem_total > 0 and last.disk_total > 0 and last.mem_used > 0
    old = datetime.now(timezone.utc) - timedelta(days=2)
    assert s.get_metrics(start=old, end=old + timedelta(hours=1)) == []
