# SPDX-License-Identifier: Apache-2.0
"""GPUs that nobody knows he has: allocations whose answer was cut off, as gflowd was killed or stopped or the client
went away, and those whose client died while they waited."""

import json
import os
import select
import signal
import subprocess

import pytest
from faults import STRACE
from http_client import Connection, ask
from machine import ENDED, PATIENCE, Machine

ALLOCATE = "/api/v1/gpu/allocate"


@pytest.fixture
def large():
    """A machine with a GPU for each round."""
    made = Machine("sim:64xH100")
    try:
        made.up()
        yield made
    finally:
        made.close()


def send(machine, need, **headers):
    """Asks for an allocation; the connection the answer will come by."""
    connection = Connection(machine.socket)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    connection.request("POST", ALLOCATE, json.dumps(need), {"Content-Type": "application/json"} | named)
    return connection


def received(connection):
    """The allocation the client was told of; None if it was not told all of it."""
    text = b""
    try:
        while chunk := connection.sock.recv(65536):
            text += chunk
            head, _, body = text.partition(b"\r\n\r\n")
            length = [line.split(b":")[1] for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")]
            if length and len(body) >= int(length[0]):
                assert head.split()[1] in (b"200", b"202"), text
                return json.loads(body)["allocation_id"]
    except ConnectionResetError:
        pass
    return None


def ended_while_asked(machine, number, after, need, **headers):
    """Sends the signal some time after a request, or once it is answered, and waits until the daemon is gone."""
    process = os.pidfd_open(machine.daemon_pid())
    try:
        connection = send(machine, need, **headers)
        select.select([connection.sock], [], [], after)
        signal.pidfd_send_signal(process, number)
        assert select.select([process], [], [], PATIENCE)[0]
        return connection
    finally:
        os.close(process)


def alive(machine):
    """The allocations there are, with the GPUs of each."""
    jobs = machine.get("/api/v1/jobs?limit=1000")["jobs"]
    return {job["id"]: job["gpu_indices"] for job in jobs if job["status"] not in ENDED and job["spec"]["allocation"]}


def settled(machine):
    """The same once none of them is on its way out."""
    while True:
        page = machine.get("/api/v1/jobs?limit=1000")
        if not any(job["status"] == "Completing" for job in page["jobs"]):
            return alive(machine)
        machine.get(f"/api/v1/changes?revision={page['revision']}")


def noted(machine):
    """The allocations of which gflowd notes, right before it sends the answer, that their clients may know."""
    lines = (machine.state / "answered").read_text().splitlines()
    return {int(line) for line in lines[1:]}  # the first names the boot


def cut_off(machine, number, rounds):
    """Rounds of a request whose answer may be cut off; what clients were told of, and of what nobody can say whether
    they were: killed after the note, before the answer was sent (test_where_it_is_killed_decides)."""
    told, in_doubt = set(), set()
    for turn in range(rounds):
        before = noted(machine)
        after = 0.002 * turn if turn < rounds - 3 else PATIENCE  # at last it is answered, however busy the machine
        connection = ended_while_asked(machine, number, after, {"gpus": "1"})
        if (allocation := received(connection)) is not None:
            told.add(allocation)
        elif number == signal.SIGKILL:
            in_doubt |= noted(machine) - before
        connection.close()
        machine.up()
    return told, in_doubt


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_an_allocation_nobody_was_told_of_ends(large, number):
    told, in_doubt = cut_off(large, number, 40)
    held = settled(large)
    assert 0 < len(told) < 40, told  # else it was not tried
    assert set(held) == told | in_doubt, f"held: {held}, told: {told}, in doubt: {in_doubt}"
    assert all(len(gpus) == 1 for gpus in held.values())
    free = large.get("/api/v1/gpu/status")["available_nodes"][0]["available_gpus"]
    assert free == 64 - len(held)


@pytest.mark.skipif(not STRACE, reason="strace is not installed (./dev setup)")
@pytest.mark.parametrize(("call", "is_noted"), [("write", False), ("sendmsg", True)])
def test_where_it_is_killed_decides(machine, call, is_noted):
    """Killed as it is about to note that it answers, and as it is about to send that answer: only between these two
    does it hold what its client was not told of."""
    only = ["-P", str(machine.state / "answered")] if call == "write" else []
    trace = machine.root / "trace"
    pid = machine.daemon_pid()  # asked for before: that answer is sent, too
    tracer = subprocess.Popen(
        [STRACE, "-f", "-o", str(trace), "-e", f"trace={call}", "-e", f"inject={call}:signal=KILL:when=1", *only,
         "-p", str(pid)],
        stderr=subprocess.PIPE,
    )
    tracer.stderr.readline()  # attached
    connection = send(machine, {"gpus": "1"})
    tracer.communicate()
    assert received(connection) is None
    assert f"{call}(" in trace.read_text()
    assert noted(machine) == ({1} if is_noted else set())
    machine.up()
    assert set(settled(machine)) == noted(machine)


def test_one_with_a_key_is_asked_for_again(large):
    for turn in range(12):
        key = {"Idempotency_Key": f"turn-{turn}"}
        ended_while_asked(large, signal.SIGKILL, 0.001 * turn, {"gpus": "1"}, **key).close()
        large.up()
        again = ask(large, "POST", ALLOCATE, json.dumps({"gpus": "1"}), **key).document
        assert again["success"], again
        assert list(settled(large)) == [again["allocation_id"]]
        ask(large, "DELETE", f"/api/v1/gpu/allocations/{again['allocation_id']}")
        large.wait(again["allocation_id"])


def test_one_that_is_refused_is_forgotten(machine):
    """Who is told no holds and queues nothing, and may ask again with the same key."""
    holding = taken(machine)
    key = {"Idempotency_Key": "a-key"}
    refused = ask(machine, "POST", ALLOCATE, json.dumps({"gpus": "1"}), **key).document
    assert not refused["success"] and refused["allocation_id"] is None and refused["error_message"], refused
    machine.kill_daemon()
    machine.up()
    assert [job["id"] for job in machine.get("/api/v1/jobs")["jobs"]] == [holding]
    machine.ok("gcancel", holding)
    machine.wait(holding)
    given = ask(machine, "POST", ALLOCATE, json.dumps({"gpus": "1"}), **key).document
    assert given["success"], given


def test_an_answer_that_is_not_read_gives_nothing(machine):
    for need in ({"gpus": "2"}, {"gpus": "2", "wait": True}):
        connection = send(machine, need)
        assert select.select([connection.sock], [], [], PATIENCE)[0]
        connection.close()
    assert [job["status"] for job in machine.wait(1, 2)] == ["Cancelled", "Cancelled"]


def test_one_that_hangs_up_leaves_the_queue(machine):
    first = ask(machine, "POST", ALLOCATE, json.dumps({"gpus": "2"})).document
    assert first["success"]
    connection = send(machine, {"gpus": "1", "wait": True})
    assert listed(machine, 2)
    connection.close()
    assert machine.wait(2)[0]["status"] == "Cancelled"
    # One that has read it has it, whatever becomes of its connection.
    kept = ask(machine, "POST", ALLOCATE, json.dumps({"gpus": "1", "wait": True}))
    assert kept.status == 202 and machine.job(kept.document["allocation_id"])["status"] == "Queued"


def listed(machine, job_id):
    """Blocks until there is such a job."""
    while True:
        page = machine.get("/api/v1/jobs")
        if any(job["id"] == job_id for job in page["jobs"]):
            return True
        machine.get(f"/api/v1/changes?revision={page['revision']}")


def taken(machine):
    """All GPUs are held by a job."""
    job = machine.submit("--gpus", "2", "sleep", "infinity")
    machine.running(job)
    return job


@pytest.mark.parametrize("restarted", [False, True])
@pytest.mark.parametrize("field", ["pid", "wait_pid"])
def test_one_whose_process_dies_leaves_the_queue(machine, field, restarted):
    holding = taken(machine)
    program = subprocess.Popen(["sleep", "infinity"])
    try:
        answer = ask(machine, "POST", ALLOCATE, json.dumps({"gpus": "1", "wait": True, field: program.pid}))
        waiting = answer.document["allocation_id"]
        assert answer.status == 202 and machine.job(waiting)["status"] == "Queued"
        if restarted:
            machine.kill_daemon()
    finally:
        program.kill()
        program.wait()
    if restarted:
        machine.up()
    assert machine.wait(waiting)[0]["status"] == "Cancelled"
    assert machine.job(holding)["status"] == "Running"


def test_more_of_them_leave_the_queue_than_processes_can_be_held():
    """Of a gflowd that may open hardly any files: the rest is looked at in turn."""
    machine = Machine(devices="sim:2xRTX3090")
    programs = []
    try:
        machine.bash("ulimit -n 128; gflowd up --devices " + machine.devices)
        taken(machine)
        programs = [subprocess.Popen(["sleep", "infinity"]) for _ in range(16)]
        waiting = [
            ask(machine, "POST", ALLOCATE, json.dumps({"gpus": "1", "wait": True, "pid": program.pid})).document["allocation_id"]
            for program in programs
        ]
        for program in reversed(programs):
            program.kill()
            program.wait()
        assert {job["status"] for job in machine.wait(*waiting)} == {"Cancelled"}
    finally:
        for program in programs:
            program.kill()
        machine.close()


def test_the_process_that_waited_may_end_afterwards(machine):
    program = subprocess.Popen(["sleep", "infinity"])
    answer = ask(machine, "POST", ALLOCATE, json.dumps({"gpus": "1", "wait": True, "wait_pid": program.pid})).document
    assert answer["success"] and answer["expires_at"] is not None, answer
    program.kill()
    program.wait()
    machine.ok("gbatch", "--gpus", "1", "--wait", "true")  # some time in which it would have been noticed
    assert machine.job(answer["allocation_id"])["status"] == "Running"


@pytest.mark.parametrize("words", [["true"], ["--env"]])
def test_galloc_that_is_killed_leaves_the_queue(machine, words):
    taken(machine)
    galloc = subprocess.Popen(["galloc", *words], env=machine.environment, cwd=machine.work, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL)
    assert listed(machine, 2) and machine.job(2)["status"] == "Queued"
    galloc.kill()
    galloc.communicate()
    assert machine.wait(2)[0]["status"] == "Cancelled"
