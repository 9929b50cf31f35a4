# SPDX-License-Identifier: Apache-2.0
"""gflow in notebooks: a real kernel, which runs cells as jobs."""

import html.parser
import json
import os
import subprocess
import sys

import gflow
import pytest
from gflow import _cell, _html
from machine import Gate
from package import ROOT, SOURCE
from pypi import program

HOSTILE = "<script>alert('x')</script>\"'&\x1b[31m\u202e<img src=x onerror=y>"


class Notebook:
    """What a person has open: cells run one after the other; each gives the list of what it showed."""

    def __init__(self, machine):
        environment = machine.environment | {
            "PYTHONPATH": str(SOURCE), "PYTHONDONTWRITEBYTECODE": "1", "IPYTHONDIR": str(machine.home / ".ipython"),
            "JUPYTER_RUNTIME_DIR": str(machine.home / "runtime")}
        self._process = subprocess.Popen(
            [program("python"), ROOT / "tests/python/kernel.py"], env=environment, cwd=machine.work, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.run("%load_ext gflow")

    def begin(self, code, **more):
        self._process.stdin.write(json.dumps({"code": code, **more}) + "\n")
        self._process.stdin.flush()

    def end(self):
        return json.loads(self._process.stdout.readline())

    def run(self, code):
        self.begin(code)
        return self.end()

    def close(self):
        self._process.stdin.close()
        assert self._process.wait(60) == 0


@pytest.fixture
def notebook(machine):
    made = Notebook(machine)
    yield made
    made.close()


def streams(given):
    return "".join(content["text"] for kind, content in given if kind == "stream")


def states(given):
    """What the line of the job said, one after the other, without markup."""
    shown = [content["data"]["text/html"] for kind, content in given if kind in ("display_data", "update_display_data")]
    return [one.replace("</b>", "").split(">", 1)[1] for one in shown]


def test_a_cell_is_a_job(notebook, machine):
    """Its output, its value, what it left, and what it had of the notebook."""
    notebook.run("rates = [0.1, 0.2]\nclass Model:\n    def __init__(self, n): self.n = n")
    given = notebook.run("%%gflow --gpus 1 --time 30 --name fit --send rates,Model --bring best,model\n"
                         "import os\nprint('on', os.environ['CUDA_VISIBLE_DEVICES'], __name__)\n"
                         "best = max(rates)\nmodel = Model(len(rates))\nbest * 10")
    assert streams(given) == "on 0 __main__\n2.0\n"
    assert states(given)[-1] == "Finished on GPU 0"
    spec = machine.job(1)["spec"]
    assert (spec["name"], spec["time_limit_seconds"], spec["request"]["gpus"]) == ("fit", 1800, 1)
    assert streams(notebook.run("print(best, model.n)")) == "0.2 2\n"
    assert list((machine.state / "functions").iterdir()) == []


def test_it_says_why_it_waits_and_shows_output_as_it_comes(notebook, machine):
    holder = machine.submit("--gpus", "2", "sleep", "600")
    machine.running(holder)
    gate, shown = Gate(machine), machine.work / "shown"
    os.mkfifo(shown)
    with gflow.Client(f"unix:{machine.socket}") as client:
        notebook.begin(f"%%gflow --gpus 1\nimport os\nprint('begun')\nleft = os.system({gate.command!r})\nprint('done')", shown=str(shown))
        assert shown.read_text() == "now"
        reason = client.newest().why()[0]["text"]
        client.cancel(holder)
        gate.reached()
        gate.open()
        given = notebook.end()
    said = states(given)
    assert any(reason in one for one in said if one.startswith("Queued")), said
    assert said[-1].startswith("Finished on GPU") and streams(given) == "begun\ndone\n"


def test_a_cell_may_await(notebook):
    """All of it on one loop, as in the notebook."""
    given = notebook.run("%%gflow --bring got\nimport asyncio\nasync def twice(x):\n    await asyncio.sleep(0)\n    return 2 * x\n"
                         "loop = asyncio.get_running_loop()\ngot = [await twice(x) for x in (1, 2)]\n"
                         "assert loop is asyncio.get_running_loop()\nawait twice(5)")
    assert streams(given) == "10\n" and streams(notebook.run("print(got)")) == "[2, 4]\n"
    assert streams(notebook.run("%%gflow\nimport asyncio\nasync def one(): return 1\nasyncio.run(one())")) == "1\n"


def test_what_only_ipython_runs_is_refused_with_its_line(notebook, client):
    for cell, says in {
        "import os\n\n!pip list": "line 3: '!pip list' is run by IPython",
        "x = 1\nif x:\n    %timeit x": "line 3: '%timeit x' is run by IPython",
        "files = !ls": "line 1: 'files = !ls' is run by IPython",
        "%%bash\nls": "line 1: '%%bash' is run by IPython",
        "x = 1\nx?": "line 2: 'x?' is run by IPython",
        "x = 1\nfor y in x\n    pass": "line 2: expected ':': 'for y in x'",
    }.items():
        given = notebook.run(f"%%gflow\n{cell}")
        assert f"%%gflow: {says}" in streams(given) and "Traceback" not in str(given), (cell, given)
    assert client.jobs() == []
    assert streams(notebook.run("%%gflow\n  print('%time !ls x?', 7 % 4)")) == "%time !ls x? 3\n"


@pytest.mark.parametrize(("options", "says"), [
    ("--job 1x", "argument --job: '1x' is not the name of a variable"), ("--job class", "argument --job: 'class' is not"),
    ("--bring 'a b'", "argument --bring: 'a b' is not"), ("--bring a,b.c", "argument --bring: 'b.c' is not"),
])
def test_a_name_that_no_variable_has_is_refused_before_there_is_a_job(notebook, client, options, says):
    assert says in streams(notebook.run(f"%%gflow {options}\na = 1"))
    assert client.jobs() == []


def test_a_cell_is_compiled_as_it_is(notebook):
    """And not as the files of this package."""
    assert streams(notebook.run("%%gflow\ndef f(x: int): ...\nf.__annotations__['x'] is int")) == "True\n"


def test_an_interrupt_cancels(notebook, machine):
    gate, told = Gate(machine), machine.work / "interrupt"
    os.mkfifo(told)
    notebook.begin(f"%%gflow --gpus 1\nimport os\nos.system({gate.command!r})", interrupt=str(told))
    gate.reached()
    told.write_text("now")
    given = notebook.end()
    assert given[-1][0] == "error" and given[-1][1]["ename"] == "KeyboardInterrupt"
    assert states(given)[-1].startswith("Cancelled") and machine.job(1)["status"] == "Cancelled"


def test_an_interrupt_of_one_that_waits_cancels(notebook, machine):
    holder = machine.submit("--gpus", "2", "sleep", "600")
    machine.running(holder)
    notebook.begin("%%gflow --gpus 1\npass", interrupt_at="display_data")
    given = notebook.end()
    assert given[-1][0] == "error" and given[-1][1]["ename"] == "KeyboardInterrupt"
    said = states(given)
    assert said[0].startswith("Queued") and said[-1].startswith("Cancelled") and machine.job(2)["status"] == "Cancelled"


def test_what_goes_wrong_is_said(notebook, machine):
    given = notebook.run("%%gflow\ndef halve(x):\n    return x / 0\nhalve(4)")
    assert given[-1][1]["ename"] == "ZeroDivisionError" and states(given)[-1] == "Failed: exit code 1"
    assert "line 2, in halve\n    return x / 0" in streams(given)  # of the cell, with its lines
    for code, says in {
        "%%gflow --gpus 9\npass": "could never start",
        "%%gflow --gpus nope\npass": "nope",
        "%%gflow --gpsu 1\npass": "unrecognized arguments: --gpsu",
        "%%gflow --gpus 'x(\npass": "No closing quotation in '--gpus 'x('; quotes come in pairs",
        "%%gflow\nimport sys; sys.exit(0)": "Finished without a result: it ended its process itself",
        "%%gflow --time soon\npass": "'soon' is no time",
        "%%gflow --send nothing\npass": "no variable 'nothing'",
        "%gflow --gpus 1": "takes no options",
    }.items():
        given = notebook.run(code)
        said = streams(given) + "".join(content.get("evalue", "") for _, content in given)
        assert says in said and "Traceback" not in said, (code, given)
    given = notebook.run("%%gflow --bring nothing\npass")
    assert "left no variable 'nothing'" in given[-1][1]["evalue"]
    machine.down()
    given = notebook.run("import gflow; gflow.default_client()._calls.patience = 0\n%gflow")
    assert "gflowd up" in streams(given) + str(given)


def test_queue_and_job_are_shown(notebook, machine):
    machine.running(machine.submit("--gpus", "2", "--name", "first", "sleep", "600"))
    given = notebook.run("%%gflow --gpus 1 --job later\n1")
    assert "later" in streams(notebook.run("print(later.name, 'later')"))
    for code in ("%gflow", "import gflow; gflow.jobs()"):
        shown = notebook.run(code)[-1][1]["data"]["text/html"]
        assert "first" in shown and "Running" in shown and "Queued" in shown
    shown = given[-1][1]["data"]
    assert "cell" in shown["text/html"] and shown["text/plain"] == "<gflow.Job 2 cell>"


class Reader(html.parser.HTMLParser):
    """What a browser makes of it: elements, and text."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.text = set(), ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.elements.add((tag, *[name for name, _ in attrs]))

    def handle_data(self, data):
        self.text += data


def test_what_people_wrote_is_never_markup(client):
    client.submit(["echo", HOSTILE], project="p")
    job = client.job(1)
    known = {("table",), ("thead",), ("tbody",), ("tr",), ("th", "style"), ("td", "style"), ("b", "style"), ("code",)}
    read = Reader(job._repr_html_())
    assert read.elements <= known and "<script>alert(" in read.text and "\x1b" not in read.text and "\u202e" not in read.text
    told = dict(job.show(), status=HOSTILE, reason=HOSTILE, blockers=[{"text": HOSTILE}], id=HOSTILE,
                user={"name": HOSTILE}, spec={"name": HOSTILE, "command": {"base64": "PGI+/w=="}, "request": {"gpus": HOSTILE}})
    assert Reader(_html.job_html(told)).elements <= known and Reader(_html.line_html(told)).elements <= known
    assert "<b>\ufffd" in Reader(_html.job_html(told)).text
    assert "... " not in _html.text_of("x" * 300) and _html.text_of("x" * 301).endswith("...")
    many = _html.jobs_html([job.show()] * 201)
    assert "1 more" in many and Reader(client.jobs()._repr_html_()).elements <= known


def test_a_job_of_a_gflowd_that_is_gone_says_so(machine):
    with gflow.Client(f"unix:{machine.socket}", patience=0) as client:
        job = client.submit("true")
        machine.down()
        assert "&lt;gflow.Job 1 " in job._repr_html_() and "gflowd up" in job._repr_html_()


def test_what_is_known_of_a_job_is_told_as_it_changes(client):
    job = client.submit("true", hold=True)
    seen = []
    for told in job.changes():
        seen.append(told["status"])
        if told["status"] == "Hold":
            job.release()
    assert seen[0] == "Hold" and seen[-1] == "Finished"


def test_the_importable_part_needs_no_notebook():
    assert "IPython" not in sys.modules and _cell.run_cell("x = 1", {}, ["x"]) == {"x": 1}
