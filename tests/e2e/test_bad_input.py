# SPDX-License-Identifier: Apache-2.0
"""Bad input: a clear error that names it and a way out, the right exit code, nothing half-submitted."""

import base64
import json
import os

import pytest
from http_client import ask
from machine import Gate


@pytest.fixture(scope="module")
def machine(request):
    from machine import Machine

    made = Machine("sim:8xH100")
    try:
        made.up()
        yield made
    finally:
        made.close()


REFUSED = [
    (["--gpu", "2", "true"], 2, "did you mean --gpus"),
    (["--time", "soon", "true"], 2, "soon"),
    (["--time", "90000h", "true"], 2, "'90000h' is longer than 10 years"),
    (["--project", "x" * 200, "true"], 2, "its project has 200 characters; the maximum is 64"),
    (["--memory", "8X", "true"], 2, "8X"),
    (["--gpus", "two", "true"], 2, "two"),
    (["--gpus", "-1", "true"], 7, "allow_see_all"),
    (["--gpus", "-2", "true"], 2, "-1 alone"),
    (["--gpus", "1.5", "true"], 2, "write 2 or 0.5"),
    (["--gpus", "1(V100", "true"], 2, "column 2"),
    (["--gpus", "9", "true"], 7, "9 GPUs"),
    (["--gpus", "99999999999999999999", "true"], 2, "99999999999999999999"),
    (["--cpus", "100000", "true"], 7, "100000 CPUs"),
    (["--memory", "900T", "true"], 7, "900T"),
    (["--priority", "300", "true"], 2, "300"),
    (["--depends-on", "4711", "true"], 3, "4711"),
    (["--depends-on", "x", "true"], 2, "x"),
    (["--begin", "yesterday-ish", "true"], 2, "yesterday-ish"),
    (["--config", "not-there.yaml", "true"], 3, "not-there.yaml"),
    (["--name", "two\nlines", "true"], 2, "not U+000A"),
    (["--name", b"\xff\xfe", "true"], 2, "\\xff"),
    (["--name", "x" * 1000, "true"], 2, "name"),
    (["missing.sh"], 3, "missing.sh"),
    (["./missing"], 3, "missing"),
    (["no-such-program-4711"], 3, "no-such-program-4711"),
    (["list"], 2, "gqueue"),
    (["/tmp"], 2, "directory"),
    (["--array", "5-1", "true"], 2, "5-1"),
    (["--array", "9223372036854775805-9223372036854775807", "true"], 2, "numbered up to 4000000000"),
    (["--gpus", "0.00005", "true"], 2, "write 0.0001"),
]


@pytest.mark.parametrize("words, code, said", REFUSED, ids=[str(row[0])[:40] for row in REFUSED])
def test_refused_with_a_reason(machine, words, code, said):
    before = machine.get("/api/v1/jobs?limit=1")["revision"]
    ran = machine.run("gbatch", *words)
    assert ran.code == code, ran
    assert said in ran.err, ran
    assert ran.out == ""
    assert machine.get("/api/v1/jobs?limit=1")["revision"] == before


def test_a_state_directory_that_cannot_be_made_is_refused_for_its_reason(bare):
    """Not for what was looked up after it had failed."""
    for place, why in (("/sys/kernel/gflow-test", ("Operation not permitted", "Permission denied", "Read-only file system")),
                       ("/dev/null/gflow-test", ("Not a directory",))):
        ran = bare.run("env", f"XDG_DATA_HOME={place}", "gflowd", "up", "--devices", bare.devices)
        assert ran.code != 0 and any(words in ran.err for words in why), ran


def test_bad_directive_names_file_and_line(machine):
    (machine.work / "bad.sh").write_text("#!/bin/bash\n# GFLOW --gpus 2\n# GFLOW --time soon\necho x\n")
    ran = machine.run("gbatch", "bad.sh")
    assert ran.code == 2 and "bad.sh:3" in ran.err and "soon" in ran.err


def test_unknown_directive_names_file_and_line(machine):
    (machine.work / "odd.sh").write_text("#!/bin/bash\n# GFLOW --gups 2\necho x\n")
    ran = machine.run("gbatch", "odd.sh")
    assert ran.code == 2 and "odd.sh:2" in ran.err and "--gups" in ran.err


def test_all_of_an_array_or_nothing(machine):
    before = machine.get("/api/v1/jobs?limit=1")["revision"]
    ran = machine.run("gbatch", "--array", "1-50", "--gpus", "9", "true")
    assert ran.code == 7
    assert machine.get("/api/v1/jobs?limit=1")["revision"] == before


def test_script_without_shebang_runs_in_a_shell(machine):
    (machine.work / "plain.sh").write_text('[[ -n "$BASH_VERSION" ]] && echo bash\n')
    job = machine.submit("plain.sh")
    machine.wait(job)
    assert machine.log(job) == "bash\n"


def test_python_file_without_shebang_is_not_fed_to_a_shell(machine):
    (machine.work / "train.py").write_text("import os\n")
    ran = machine.run("gbatch", "train.py")
    assert ran.code == 2 and "python train.py" in ran.err


def test_300_kilobyte_command_line(machine):
    words = ["echo"] + ["x" * 1000] * 300
    job = machine.submit(*words)
    assert machine.wait(job)[0]["status"] == "Finished"
    assert len(machine.log(job)) == 300 * 1001


def test_working_directory_deleted_before_the_start(machine):
    gate = Gate(machine, "dir")
    blocker = machine.submit("--gpus", "8", "bash", "-c", gate.command)
    gate.reached()
    place = machine.work / "doomed"
    place.mkdir()
    job = machine.submit("--gpus", "1", "pwd", cwd=place)
    place.rmdir()
    gate.open()
    _, ended = machine.wait(blocker, job)
    assert ended["status"] == "Failed"
    assert ended["outcome"]["reason"] == "launch_failed"
    assert "doomed" in ended["outcome"]["message"]
    assert "doomed" in machine.log(job)


def test_program_that_vanishes_before_the_start(machine):
    gate = Gate(machine, "vanish")
    blocker = machine.submit("--gpus", "8", "bash", "-c", gate.command)
    gate.reached()
    program = machine.work / "tool"
    program.write_bytes(b"\x7fELF nonsense")
    program.chmod(0o755)
    job = machine.submit("--gpus", "1", "./tool")
    program.unlink()
    gate.open()
    assert machine.wait(blocker, job)[1]["outcome"]["reason"] == "launch_failed"


def test_bytes_that_are_not_utf8_reach_the_program(machine):
    job = machine.submit("printf", "%s", b"a\xffb")
    machine.wait(job)
    assert (machine.logs / f"{job}.log").read_bytes() == b"a\xffb"
    assert "\\xff" in machine.ok("gjob", "show", job)


def test_control_characters_do_not_reach_the_terminal(machine):
    job = machine.submit("echo", "\x1b[2J\x07")
    machine.wait(job)
    for command in (["gjob", "show", job], ["gqueue", "-a"]):
        assert "\x1b[2J" not in machine.ok(*command)


def texts_of(document):
    """All that a document says, as one text."""
    if isinstance(document, dict):
        return "".join(map(texts_of, document.values()))
    return "".join(map(texts_of, document)) if isinstance(document, list) else str(document)


def test_what_a_terminal_obeys_is_in_no_form_of_output(machine):
    """C1 controls and what changes the direction of the text around it (CVE-2021-42574); JSON has them escaped."""
    hidden = "\x9b31m\x85\u061c\u200f\u202e\u2066\u2028\x7f"
    place = machine.work / f"训b{hidden}"
    place.mkdir()
    job = machine.submit("echo", f"训b{hidden}", cwd=place)
    machine.wait(job)
    documents = [["gqueue", "-a", "--json"], ["gqueue", "-a", "-o", "jsonl"], ["gjob", "show", job, "--json"]]
    others = [["gqueue", "-a", "-o", form, "-f", "JOBID,COMMAND,WORKDIR"] for form in ("table", "csv", "tsv", "yaml")]
    for command in documents + others + [["gjob", "show", job]]:
        shown = machine.ok(*command)
        assert "训b" in shown and not [c for c in hidden if not c.isascii() and c in shown] and "\x7f" not in shown, command
    for command in documents:
        lines = machine.ok(*command).splitlines()
        assert any(hidden in texts_of(json.loads(line)) for line in lines), command


def test_dependency_cycle_by_update(machine):
    gate = Gate(machine, "cycle")
    first = machine.submit("--gpus", "8", "bash", "-c", gate.command)
    gate.reached()
    second = machine.submit("--gpus", "1", "true")
    third = machine.submit("--depends-on", second, "true")
    ran = machine.run("gjob", "update", second, "--depends-on", third)
    assert ran.code == 2 and "cycle" in ran.err
    gate.open()
    machine.wait(first, second, third)


@pytest.mark.parametrize(
    "command, code",
    [
        (["gjob", "show", "99999"], 3),
        (["gcancel", "99999"], 3),
        (["gjob", "hold", "99999"], 3),
        (["gjob", "log", "99999"], 3),
        (["gjob", "why", "99999"], 3),
        (["gcancel", "nonsense"], 2),
        (["gcancel", "all"], 2),
        (["gbatch", "-P", "  ", "true"], 2),
        (["gqueue", "-f", "{bogus}"], 2),
        (["gqueue", "-f", "JOBID,COLOUR"], 2),
        (["gqueue", "-s", "Sleeping"], 2),
        (["gqueue", "--nonsense"], 2),
        (["gflow", "nonsense"], 2),
        (["gflowd", "upp"], 2),
        (["gflowd", "up", "--devices", "sim:8xPotato"], 6),
    ],
)
def test_exit_codes(machine, command, code):
    ran = machine.run(*command)
    assert ran.code == code, ran
    assert ran.err


def test_cancel_of_an_ended_job_is_a_wrong_state(machine):
    job = machine.submit("true")
    machine.wait(job)
    assert machine.run("gcancel", job).code == 6


def test_daemon_not_running(bare):
    for command in (["ginfo"], ["gqueue"], ["gbatch", "true"], ["gcancel", "1"], ["gjob", "show", "1"], ["gjob", "wait", "1"]):
        ran = bare.run(*command)
        assert ran.code == 4 and "gflowd up" in ran.err and ran.out == "", ran


def test_second_daemon_refuses_and_names_the_first(machine):
    ran = machine.run("gflowd", "--devices", "none")
    assert ran.code == 6 and str(machine.daemon_pid()) in ran.err


def test_unknown_model_lists_the_models(bare):
    ran = bare.run("gflowd", "up", "--devices", "sim:8xPotato")
    assert ran.code == 2 and "Potato" in ran.err and "H100" in ran.err


@pytest.mark.parametrize(
    "text, said",
    [
        ("[scheduler]\nbackfil_patience = '1h'\n", "backfill_patience"),
        ("[scheduler]\nbackfill_patience = 'soon'\n", "soon"),
        ("[scheduler\n", "gflow.toml:1"),
        ("[daemon]\nlog_level = 7\n", "log_level"),
        ("[daemon]\nsocket = 'rel.sock'\n", "'rel.sock' is a relative path"),
        ("[daemon]\ndevices = 'sim:lab.yaml'\n", "'sim:lab.yaml' is a relative path"),
    ],
)
def test_bad_configuration_names_the_place(bare, text, said):
    bare.config(text)
    ran = bare.run("gflowd", "up", "--devices", "none")
    assert ran.code == 2 and said in ran.err and "gflow.toml" in ran.err


@pytest.mark.parametrize("place", ["gflow.toml", "gpu_config.yaml", "devices"])
def test_a_pipe_nobody_writes_to_is_no_configuration(bare, place):
    bare.config("")
    pipe = bare.work / "lab.yaml" if place == "devices" else bare.home / ".config/gflow" / place
    pipe.unlink(missing_ok=True)
    os.mkfifo(pipe)
    devices = f"sim:{pipe.name}" if place == "devices" else "none"
    ran = bare.run("gflowd", "up", "--devices", devices)
    assert ran.code == 2 and f"'{pipe}' is not a regular file" in ran.err, ran


def test_a_relative_path_in_the_environment_names_its_variable(bare):
    for variable, value in (("GFLOW_GPU_CONFIG", "gpus.yaml"), ("GFLOW_DAEMON__SOCKET", "rel.sock")):
        ran = bare.run("gflowd", "up", "--devices", "none", env={variable: value})
        assert ran.code == 2 and f"{variable}: '{value}' is a relative path" in ran.err, ran


def test_a_reason_of_a_drain_has_a_limit(machine):
    ran = machine.run("gctl", "drain", "gpu", "0", "--reason", "x" * 10_000)
    assert ran.code == 2 and "the reason has 10000 bytes; the maximum is 1024" in ran.err, ran
    assert machine.get("/api/v1/drain")["drains"] == []


def test_only_what_a_file_has_may_have_a_nul(machine):
    """Whatever way it comes: a text that others are shown, or that is an argument, has none."""
    nul = {"base64": "YQBi"}
    for target, body in [("drain", {"gpu": 0, "reason": nul}), ("place", {"request": {"selector": [{"key": nul, "value": "x"}]}})]:
        refused = ask(machine, "POST", f"/api/v1/{target}", json.dumps(body))
        assert refused.status == 400 and "must not contain a NUL character" in refused.document["detail"], refused
    script = {"base64": base64.b64encode(b"#!/bin/sh\necho ran\nexit\n\0").decode()}
    items = [{"spec": {"work_dir": "/"}, "payload": {"argv": ["unpack"], "script": script, "config_name": "c", "config": nul}}]
    taken = ask(machine, "POST", "/api/v1/jobs", json.dumps({"items": items}))
    assert taken.status == 201, taken
    (job,) = machine.wait(taken.document["items"][0]["id"])
    assert job["status"] == "Finished" and machine.log(job["id"]) == "ran\n"


def test_malformed_requests_do_not_end_the_daemon(machine):
    import socket

    pid = machine.daemon_pid()
    for junk in (b"\0" * 100, b"GET / HTTP/9.9\r\n\r\n", os.urandom(4096), b"POST /api/v1/jobs HTTP/1.1\r\n\r\n{"):
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(machine.socket))
            connection.sendall(junk)
            connection.shutdown(socket.SHUT_WR)
            try:
                while connection.recv(65536):
                    pass
            except ConnectionResetError:
                pass  # as good an answer as a polite one
    assert machine.daemon_pid() == pid


@pytest.mark.parametrize("words, said", [
    (["gjob", "signal", "USR1", "1"], "unknown command 'signal'; use 'gcancel --signal SIGNAL JOB'"),
    (["gqueue", "-s", "all"], "'all' is not a state; -a lists jobs in all states"),
])
def test_what_is_elsewhere_is_pointed_to(machine, words, said):
    ran = machine.run(*words)
    assert ran.code == 2 and said in ran.err and ran.out == "", ran
