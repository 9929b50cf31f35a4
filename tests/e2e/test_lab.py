# SPDX-License-Identifier: Apache-2.0
"""gctl and gflow lab: a live state becomes a file, is replayed, and what would be if is told."""

import csv
import io
import json
import re
import xml.etree.ElementTree

import pytest
from machine import Gate

TRACE = "submit,duration,gpus,user\n" + "".join(f"{i * 60},{600 + i * 37 % 1900},{1 + i % 8},u{i % 3}\n" for i in range(60))


def replay(machine, *options, code=0):
    ran = machine.run("gflow", "lab", "replay", *options)
    assert ran.code == code, ran.err
    return ran


def runs(machine, *options):
    return json.loads(replay(machine, *options, "--json").out)["runs"]


@pytest.fixture
def trace(bare):
    file = bare.work / "trace.csv"
    file.write_text(TRACE)
    return file


def test_a_trace_needs_no_daemon(bare, trace):
    (only,) = runs(bare, trace, "--nodes", "1x8")
    assert only["jobs"] == only["ended"] == 60 and only["never_started"] == 0
    assert only["mean_wait_seconds"] > 0 and 0 < only["utilization_percent"] <= 100


def test_the_same_replay_is_the_same_bytes(bare, trace):
    first = [replay(bare, trace, "--nodes", "1x8", *form).out for form in ((), ("--json",), ("--csv",))]
    assert first == [replay(bare, trace, "--nodes", "1x8", *form).out for form in ((), ("--json",), ("--csv",))]


def test_another_node_shortens_the_wait(bare, trace):
    before, after = runs(bare, trace, "--nodes", "1x8", "--add-node", "sim:8xH100")
    assert (before["run"], after["run"]) == ("as it is", "--add-node sim:8xH100")
    assert after["gpus"] == 16 and after["ended"] == 60
    assert after["mean_wait_seconds"] < before["mean_wait_seconds"] / 2
    text = replay(bare, trace, "--nodes", "1x8", "--add-node", "sim:8xH100").out
    assert "--add-node sim:8xH100: mean wait " in text and " -> " in text


def test_fewer_nodes_and_other_policies(bare, trace):
    rows = runs(bare, trace, "--nodes", "3x8", "--remove-node", "node2", "--policy", "pack", "--policy", "spread")
    assert [row["gpus"] for row in rows] == [24, 16, 16]
    assert rows[1]["run"].endswith("placement.policy=pack") and rows[2]["run"].endswith("placement.policy=spread")


def test_csv_and_pictures(bare, trace):
    picture = bare.work / "out.svg"
    out = replay(bare, trace, "--nodes", "1x8", "--csv", "--plot", picture).out
    rows = list(csv.DictReader(io.StringIO(out.split("\n\n")[0])))
    assert rows[0]["run"] == "as it is" and float(rows[0]["makespan_seconds"]) > 0
    root = xml.etree.ElementTree.parse(picture).getroot()
    assert root.tag.endswith("svg") and "GPUs in use" in picture.read_text()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("submit,duration,gpus\n0,10,1\n5,x,1\n", "bad.csv:3: duration: 'x' is not a number from 0 on"),
        ("a,b\n1,2\n", "bad.csv:1: there is no column 'submit'"),
        ("", "bad.csv: no jobs"),
        ("\x1f\x8bnot gzip", "is not what gzip packed"),
        ("{\n", "bad.csv"),
        ('{"apiVersion": "gflow/v1", "kind": "Job"}', "Snapshot"),
        ('{"apiVersion":"gflow/v1","kind":"Snapshot","version":9,"taken":"2026-01-01T00:00:00Z","next_id":1,"nodes":[],"jobs":[]}', "version 9"),
    ],
)
def test_bad_files_are_named_with_their_line(bare, content, message):
    (bare.work / "bad.csv").write_bytes(content.encode("latin-1"))
    ran = bare.run("gflow", "lab", "replay", "bad.csv", "--nodes", "1x8")
    assert ran.code in (1, 2) and message in ran.err and ran.out == ""


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((), "a trace does not describe the machines"),
        (("--nodes", "x8"), "'x8' says no nodes"),
        (("--nodes", "1x8xQ9"), "Q9"),
        (("--nodes", "1x8", "--policy", "packk"), "did you mean 'pack'?"),
        (("--nodes", "1x8", "--set", "backfill=1h"), "there is no key 'backfill'"),
        (("--nodes", "1x8", "--remove-node", "node7"), "there is no node 'node7'"),
        (("--nodes", "1x8", "--days", "5-2"), "not a range of days"),
        (("--nodes", "1x8", "--plot", "a.png"), "--plot writes an SVG"),
    ],
)
def test_bad_options_say_what_there_is(bare, trace, options, message):
    ran = bare.run("gflow", "lab", "replay", trace, *options)
    assert ran.code in (2, 3) and message in ran.err


def test_a_missing_file(bare):
    ran = bare.run("gflow", "lab", "replay", "nowhere.csv")
    assert ran.code == 3 and "nowhere.csv" in ran.err


@pytest.mark.devices("sim:2xH100")
def test_a_live_state_replays(machine):
    gate = Gate(machine)
    machine.submit("--gpus", "2", "--time", "2h", "--name", "secret-name", "bash", "-c", gate.command)
    gate.reached()
    for _ in range(4):
        machine.submit("--gpus", "1", "--time", "1h", "true")
    note = machine.run("gctl", "snapshot", "-o", "now.json")
    assert note.code == 0 and "5 jobs written to now.json" in note.err
    taken = json.loads((machine.work / "now.json").read_text())
    assert taken["kind"] == "Snapshot" and len(taken["jobs"]) == 5
    assert all(re.fullmatch(r"program\d+", job["spec"]["command"]) for job in taken["jobs"])
    assert all(job["spec"]["work_dir"] == "" for job in taken["jobs"])
    (only,) = runs(machine, "now.json")
    assert only["jobs"] == only["ended"] == 4 and only["mean_wait_seconds"] > 3600
    before, after = runs(machine, "now.json", "--add-node", "sim:2xH100")
    assert after["mean_wait_seconds"] < before["mean_wait_seconds"]
    hidden = machine.ok("gctl", "snapshot", "--anonymous")
    assert "secret-name" not in hidden and json.loads(hidden)["jobs"][0]["spec"]["name"] == "job1"
    gate.open()


def test_a_device_number_that_cannot_be_is_named(machine):
    taken = json.loads(machine.ok("gctl", "snapshot"))
    for index in (-1, 1 << 30):
        taken["nodes"][0]["devices"][0]["index"] = index
        (machine.work / "now.json").write_text(json.dumps(taken))
        ran = machine.run("gflow", "lab", "replay", "now.json")
        assert ran.code == 2 and "/index: " in ran.err and str(index) in ran.err, ran


@pytest.mark.devices("sim:2xH100")
def test_a_what_if_says_from_how_many_runs_its_times_come(machine):
    gate = Gate(machine)
    for n in range(6):
        machine.wait(machine.submit("--name", "short", "true" if n % 2 else "false"))
    machine.submit("--gpus", "2", "--time", "2h", "--name", "long", "bash", "-c", gate.command)
    gate.reached()
    machine.submit("--gpus", "2", "--name", "short", "--time", "3h", "true")
    assert machine.run("gctl", "snapshot", "-o", "now.json").code == 0
    report = json.loads(replay(machine, "now.json", "--json").out)
    named, sized = report["run_times"]
    assert (named["from"], named["jobs"], named["fewest_runs"]) == ("same user and name", 1, 6)
    assert (sized["from"], sized["jobs"]) == ("same user", 1)
    assert sized["fewest_runs"] <= 6, "of those that ran longer than it has by now"
    assert named["shorter_seconds"] <= named["median_seconds"] <= named["longer_seconds"] < 60
    (only,) = report["runs"]
    assert only["makespan_if_shorter_seconds"] <= only["makespan_seconds"] <= only["makespan_if_longer_seconds"]
    assert report["notes"][0].startswith("1 of 2 jobs have fewer than 5 ended runs of their name or size to go by")
    text = replay(machine, "now.json").out
    assert "IF LONGER" in text and "same user and name" in text
    gate.open()


@pytest.mark.devices("sim:2xH100")
def test_a_drained_gpu_takes_nothing_new(machine):
    assert machine.ok("gctl", "show") == "nothing is drained\n"
    assert machine.ok("gctl", "drain", "gpu", "1", "--reason", "fan is loud") == "GPU 1 is drained\n"
    assert "fan is loud" in machine.ok("gctl", "show") and "fan is loud" in machine.ok("ginfo")
    waiting = machine.submit("--gpus", "2", "true")
    assert "fan is loud" in machine.ok("gjob", "why", waiting)
    machine.down()
    machine.up()
    assert "fan is loud" in machine.ok("gctl", "show")
    assert machine.ok("gctl", "resume", "gpu", "1") == "GPU 1 is back in service\n"
    machine.wait(waiting)
    assert machine.run("gctl", "resume", "gpu", "1").code == 6
    assert machine.run("gctl", "drain", "gpu", "7").code == 3
    assert machine.run("gctl", "drain", "cpu", "1").code == 2
    assert machine.run("gctl", "drain", "gpu").code == 2


@pytest.mark.devices("sim:2xH100")
def test_a_drained_node_runs_empty(machine):
    machine.ok("gctl", "drain", "node", "-r", "reboot at noon")
    waiting = machine.submit("--gpus", "1", "true")
    assert "reboot at noon" in machine.ok("gctl", "show")
    assert machine.job(waiting)["status"] == "Queued"
    machine.ok("gctl", "resume", "node")
    machine.wait(waiting)


def test_what_slurm_did_stands_beside_it(bare):
    """One GPU; Slurm had the second wait half an hour for nothing."""
    (bare.work / "jobs.txt").write_text(
        "JobID|User|Submit|Start|End|State|ElapsedRaw|AllocTRES\n"
        "1|ann|2026-03-01T10:00:00|2026-03-01T10:00:00|2026-03-01T11:00:00|COMPLETED|3600|gres/gpu=1\n"
        "2|bob|2026-03-01T10:00:00|2026-03-01T11:30:00|2026-03-01T11:40:00|COMPLETED|600|gres/gpu=1\n"
        "3|bob|2026-03-01T10:00:00|2026-03-01T10:00:00|2026-03-01T11:40:00|COMPLETED|600|cpu=1\n"
    )
    slurm, gflow = runs(bare, "jobs.txt", "--nodes", "1x1")
    assert (slurm["run"], slurm["longest_wait_seconds"]) == ("Slurm", 5400)
    assert (gflow["run"], gflow["longest_wait_seconds"]) == ("gflow", 3600)
    text = replay(bare, "jobs.txt", "--nodes", "1x1").out
    assert "left out, jobs that have no GPU: 1" in text and "gflow: mean wait " in text
