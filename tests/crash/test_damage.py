# SPDX-License-Identifier: Apache-2.0
"""A database that was damaged behind gflow's back: noticed, refused, and got back by one command."""

import json
import sqlite3
import subprocess
import sys
from contextlib import closing

import pytest
from http_client import ask
from machine import Gate, appears


def refused(machine):
    """What `gflowd up` says instead of starting."""
    ran = machine.run("gflowd", "up", "--devices", machine.devices)
    assert ran.code == 1, ran
    assert "gflow doctor --recover" in ran.err, ran
    assert "Traceback" not in ran.err
    return ran.err


def recover(machine):
    return json.loads(machine.ok("gflow", "doctor", "--recover", "--json"))


def files(machine):
    """Every byte of the database, its log and its copies."""
    return {path.name: path.read_bytes() for path in machine.state.glob("gflow.db*")}


@pytest.fixture
def busy(machine):
    """One job runs on a GPU behind a gate, seven more were acknowledged."""
    machine.gate = Gate(machine)
    machine.first = machine.submit("--gpus", "1", "--name", "first", "bash", "-c", f"{machine.gate.command}; exit 3")
    machine.gate.reached()
    machine.running(machine.first)
    machine.waiting = [machine.submit("--hold", "--name", f"w{n}", "echo", n) for n in range(7)]
    return machine


def flip(path, at):
    data = bytearray(path.read_bytes())
    data[at] ^= 0x5A
    path.write_bytes(data)


def test_byte_of_the_wal(busy):
    busy.kill_daemon()
    wal = busy.state / "gflow.db-wal"
    flip(wal, wal.stat().st_size - 4120 * 20)  # frames: some transactions
    before = files(busy)
    said = refused(busy)
    assert "transactions are missing, and with them job" in said and f"-{busy.waiting[-1]}" in said
    assert {name for name, content in files(busy).items() if before.get(name) != content} == set(), "changed"
    done = recover(busy)
    assert done["needed"] and not done["complete"]
    busy.up()
    known = {job["id"] for job in busy.get("/api/v1/jobs?limit=1000")["jobs"]}
    lost = {n for part in done["missing"] for n in range(part["first"], part["last"] + 1)}
    assert known | lost == {busy.first, *busy.waiting} and not known & lost
    assert busy.job(busy.first)["status"] == "Running"
    busy.gate.open()
    assert busy.wait(busy.first)[0]["outcome"]["exit_code"] == 3
    assert busy.submit("true") > max(busy.waiting), "an id was given out again"


def test_deleted_wal(busy):
    busy.kill_daemon()
    (busy.state / "gflow.db-wal").unlink()
    said = refused(busy)
    assert f"jobs 1-{busy.waiting[-1]}" in said and ("is missing or empty" in said or "transactions are" in said)
    recover(busy)
    busy.up()
    again = busy.job(busy.first)
    assert again["status"] == "Running" and again["gpu_indices"] == [0]
    busy.gate.open()
    assert busy.wait(busy.first)[0]["outcome"]["exit_code"] == 3


@pytest.mark.parametrize("end", ["killed", "down"])
def test_a_database_without_its_ids(busy, end):
    """What is missing in it cannot be told: as after a kill the WAL may have been lost with them."""
    if end == "killed":
        busy.kill_daemon()
    else:
        busy.down()
    (busy.state / "gflow.db.ids").unlink()
    assert f"'{busy.state}/gflow.db.ids', by which it is known whether anything is missing" in refused(busy)
    done = recover(busy)
    assert done["needed"] and not done["complete"] and (done["jobs"], done["missing"]) == (8, [])
    busy.up()
    again = busy.job(busy.first)
    assert (again["status"], again["gpu_indices"]) == ("Running", [0])
    busy.gate.open()
    assert busy.wait(busy.first)[0]["outcome"]["exit_code"] == 3
    assert busy.submit("true") > max(busy.waiting), "an id was given out again"


def test_an_old_copy_without_its_ids_gives_none_out_again(machine):
    """The logs tell of the jobs that ran since."""
    machine.wait(machine.submit("echo", "first"))
    machine.down()
    copy = (machine.state / "gflow.db").read_bytes()
    machine.up()
    later = machine.submit("echo", "second")
    machine.wait(later)
    machine.kill_daemon()
    for path in machine.state.glob("gflow.db*"):
        path.unlink()
    (machine.state / "gflow.db").write_bytes(copy)
    refused(machine)
    assert recover(machine)["missing"] == [{"first": later, "last": later}]
    machine.up()
    assert machine.submit("echo", "third") == later + 1
    assert machine.log(later) == "second\n"


@pytest.mark.parametrize("ids", ["kept", "removed"])
def test_deleted_database_while_a_job_runs(busy, ids):
    busy.kill_daemon()
    for name in ("gflow.db", "gflow.db-wal") + (("gflow.db.ids",) if ids == "removed" else ()):
        (busy.state / name).unlink()
    said = refused(busy)
    assert ("is missing or empty" if ids == "kept" else f"job {busy.first} is running") in said
    done = recover(busy)
    assert done["from_attempts"] == [busy.first]
    assert bool(done["missing"]) == (ids == "kept")
    busy.up()
    again = busy.job(busy.first)
    assert (again["status"], again["spec"]["name"], again["gpu_indices"]) == ("Running", "first", [0])
    second = busy.submit("--gpus", "2", "true")
    assert busy.job(second)["status"] == "Queued", "its GPU was given on"
    busy.gate.open()
    assert busy.wait(busy.first, second)[0]["outcome"]["exit_code"] == 3


def test_an_allocation_is_got_back_as_one(machine):
    given = ask(machine, "POST", "/api/v1/gpu/allocate", '{"gpu_count": 1}').document
    path = f"/api/v1/gpu/allocations/{given['allocation_id']}"
    machine.kill_daemon()
    for name in ("gflow.db", "gflow.db-wal"):
        (machine.state / name).unlink()
    assert recover(machine)["from_attempts"] == [given["allocation_id"]]
    machine.up()
    again = ask(machine, "GET", path)
    assert again.status == 200, again
    assert again.document["success"] and again.document["gpu_config"]["devices"] == given["gpu_config"]["devices"]
    assert machine.job(given["allocation_id"])["spec"]["command"] == "allocation of 1"
    assert ask(machine, "DELETE", path).status == 200


def test_page_flipped_after_an_orderly_end(busy):
    busy.down()
    path = busy.state / "gflow.db"
    data = bytearray(path.read_bytes())
    for page in range(2, len(data) // 4096):
        data[page * 4096 : page * 4096 + 2048] = b"\x5a" * 2048
    path.write_bytes(data)
    assert "is damaged" in refused(busy)
    # All of it is in the copy made at the end.
    done = recover(busy)
    assert done["base"].startswith(str(path) + ".backup-") and done["complete"] and done["missing"] == []
    assert done["jobs"] == 8 and any(".damaged-" in kept for kept in done["kept"])
    busy.up()
    assert [job["spec"]["name"] for job in busy.get("/api/v1/jobs?limit=100")["jobs"]] == [
        "first", *(f"w{n}" for n in range(7))
    ]
    busy.ok("gjob", "release", busy.waiting[3])
    busy.wait(busy.waiting[3])
    assert busy.log(busy.waiting[3]) == "3\n"
    busy.gate.open()
    assert busy.wait(busy.first)[0]["outcome"]["exit_code"] == 3


def test_an_old_copy_put_in_place_starts_nothing_twice(machine):
    """What ran after the copy was made is not started again on a guess."""
    job = machine.submit("--hold", "bash", "-c", f"echo run >> {machine.work}/runs")
    gate = Gate(machine)
    runs = machine.submit("bash", "-c", f"echo run >> {machine.work}/runs; {gate.command}")
    gate.reached()
    machine.running(runs)
    machine.down()
    copy = machine.root / "copy"
    with closing(sqlite3.connect(machine.state / "gflow.db")) as now, closing(sqlite3.connect(copy)) as old:
        now.backup(old)
    machine.up()
    machine.ok("gjob", "release", job)
    gate.open()
    machine.wait(job, runs)
    while any((machine.state / "attempts").glob("[0-9]*")):  # from which a daemon that starts would learn how they ended
        machine.job(runs)
    later = machine.submit("--hold", "true")
    machine.kill_daemon()
    for newer in machine.state.glob("gflow.db.backup-2*"):
        newer.unlink()
    (machine.state / "gflow.db").write_bytes(copy.read_bytes())
    (machine.state / "gflow.db-wal").unlink()
    assert f"with them job {later}" in refused(machine)
    done = recover(machine)
    assert done["held"] == [job] and done["lost"] == [runs]
    assert done["missing"] == [{"first": later, "last": later}]
    machine.up()
    assert machine.job(job)["status"] == "Hold" and machine.job(runs)["status"] == "Lost"
    assert (machine.work / "runs").read_text() == "run\nrun\n"
    assert "may have run" in machine.ok("gjob", "show", job)


def test_recovery_needs_the_daemon_down_and_changes_nothing_without_need(busy):
    ran = busy.run("gflow", "doctor", "--recover")
    assert ran.code == 7 or "already running" in ran.err, ran
    busy.down()
    assert not recover(busy)["needed"]
    assert "is not damaged" in busy.ok("gflow", "doctor", "--recover")
    busy.up()
    assert busy.job(busy.first)["status"] == "Running"
    busy.gate.open()
    busy.wait(busy.first)


def left_alone(machine):
    """What `gflow doctor --recover` says of a database that is sound and cannot be opened; nothing of it changes."""

    def content():
        return {name: held for name, held in files(machine).items() if held}  # SQLite leaves an empty log

    before = content()
    ran = machine.run("gflow", "doctor", "--recover")
    assert ran.code == 1 and ran.out == "", ran
    assert content() == before
    return ran.err


def test_a_newer_database_is_not_taken_for_damaged(busy):
    busy.down()
    with sqlite3.connect(busy.state / "gflow.db") as database:
        database.execute("PRAGMA user_version = 99")
    database.close()
    assert "written by a newer gflow (schema 99" in left_alone(busy)
    assert "install that version again" in busy.run("gflowd", "up", "--devices", busy.devices).err


def test_a_database_another_program_has_open_is_not_taken_for_damaged(busy):
    busy.down()
    # Another process: whoever reads the file here and closes it would drop the locks on it.
    takes = "import sqlite3, sys; d = sqlite3.connect(sys.argv[1], isolation_level=None); d.execute('BEGIN IMMEDIATE')"
    with subprocess.Popen(
        [sys.executable, "-c", f"{takes}; print('there', flush=True); sys.stdin.read()", busy.state / "gflow.db"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as other:
        assert other.stdout.readline() == b"there\n"
        assert "in use by another process" in left_alone(busy)
        other.stdin.close()


def test_a_newer_copy_is_not_passed_over_for_an_older_one(busy):
    busy.down()
    path = busy.state / "gflow.db"
    copy = max(busy.state.glob("gflow.db.backup-2*"))
    with sqlite3.connect(copy) as database:
        database.execute("PRAGMA user_version = 99")
    database.close()
    path.write_bytes(b"\x5a" * 8192)
    assert f"'{copy}' was written by a newer gflow" in left_alone(busy)
    copy.unlink()
    recover(busy)


def test_a_copy_is_made_while_it_runs(bare):
    """Every second, if anything changed; it is synced and named only when it is whole."""
    bare.config("[store]\nbackup_interval = '1s'\nmax_backups = 2\n")
    bare.up()
    first = bare.submit("--hold", "true")
    appears(bare.state, "gflow.db.backup-2")
    bare.kill_daemon()
    for path in bare.state.glob("gflow.db*"):
        if ".backup-2" not in path.name:
            path.unlink()
    done = recover(bare)
    assert done["base"] and done["jobs"] == 1 and not done["missing"]
    bare.up()
    assert bare.job(first)["status"] == "Hold"
    assert "ok    backups" in bare.run("gflow", "doctor").out


def array_of(machine, tasks):
    out = machine.ok(
        "gbatch", "--hold", "--array", f"1-{tasks}", "bash", "-c", "echo $GFLOW_ARRAY_TASK_ID ${#LARGE}",
        env={"LARGE": "x" * 20_000},
    )
    return [int(line.split()[-1]) for line in out.splitlines()]


def test_what_an_array_runs_is_got_back_and_still_kept_once(machine):
    jobs = array_of(machine, 2000)
    machine.down()
    path = machine.state / "gflow.db"
    flip(path, -1)
    refused(machine)
    done = recover(machine)
    assert done["jobs"] == 2000 and not done["missing"] and not done.get("without_payload")
    assert path.stat().st_size < 100 * 20_000, "it is not there for each task"
    machine.up()
    machine.ok("gjob", "release", jobs[0], jobs[1999])
    machine.wait(jobs[0], jobs[1999])
    assert [machine.log(job) for job in (jobs[0], jobs[1999])] == ["1 20000\n", "2000 20000\n"]


def root_page(path, table):
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
        return database.execute("SELECT rootpage FROM sqlite_schema WHERE name = ?", (table,)).fetchone()[0]


def test_what_is_damaged_in_one_file_is_taken_from_the_next(machine):
    jobs = array_of(machine, 50)
    machine.down()
    path = machine.state / "gflow.db"
    data = bytearray(path.read_bytes())
    begin = (root_page(path, "arrays") - 1) * 4096
    data[begin + 8 : begin + 10] = b"\xff\xff"
    path.write_bytes(data)
    refused(machine)
    assert not recover(machine).get("without_payload")
    machine.up()
    machine.ok("gjob", "release", jobs[-1])
    machine.wait(jobs[-1])
    assert machine.log(jobs[-1]) == "50 20000\n"


def test_a_value_that_cannot_be_is_damage(machine):
    job = machine.submit("--hold", "echo", "here", env={"MARKED": "here it is"})
    machine.down()
    path = machine.state / "gflow.db"
    data = bytearray(path.read_bytes())
    for name in (b"MARKED=", b"HOME="):  # each is behind its length in 4 bytes
        at = data.find(name)
        data[at - 4] = 0xFF
    path.write_bytes(data)
    refused(machine)
    done = recover(machine)
    assert not done["missing"]
    machine.up()
    assert machine.job(job)["status"] == "Hold"
