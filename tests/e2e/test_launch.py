# SPDX-License-Identifier: Apache-2.0
"""gbatch --launch: a job of one process for each of its GPUs."""

import os

import pytest
from machine import Gate, kill

SAYS = 'echo "$RANK/$LOCAL_RANK of $WORLD_SIZE/$LOCAL_WORLD_SIZE, $GROUP_RANK, $CUDA_VISIBLE_DEVICES, $OMP_NUM_THREADS, ${GFLOW_LAUNCH-none}"'


def lines(machine, job):
    return sorted(machine.log(job).splitlines())


def test_a_process_for_each_gpu(machine):
    job = machine.submit("--gpus", 2, "--launch", "ddp", "--wrap", SAYS)
    assert machine.wait(job)[0]["status"] == "Finished"
    assert lines(machine, job) == [f"{rank}/{rank} of 2/2, 0, 0,1, 1, none" for rank in (0, 1)]
    one = machine.submit("--launch", "ddp", "--cpus", 2, "--export", "ALL,OMP_NUM_THREADS=7", "--wrap", SAYS)
    machine.wait(one)
    assert lines(machine, one) == ["0/0 of 1/1, 0, , 7, none"]


def test_they_meet_at_an_address_and_a_port_of_the_job(machine):
    """The first listens there, the second finds it: as a rendezvous of PyTorch does."""
    script = """#!/usr/bin/env python3
# GFLOW --gpus 2 --launch ddp
import os, socket, sys
place = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
if os.environ["RANK"] == "0":
    with socket.create_server(place) as server:
        os.write(ready := os.open(sys.argv[1], os.O_WRONLY), b"x")
        os.close(ready)
        print(server.accept()[0].recv(99).decode(), flush=True)
else:
    open(sys.argv[1]).read()
    socket.create_connection(place).sendall(b"hello from " + os.environ["RANK"].encode())
"""
    (machine.work / "meet.sh").write_text(script)
    os.mkfifo(machine.work / "ready")
    job = machine.submit("meet.sh", machine.work / "ready")
    assert machine.wait(job)[0]["status"] == "Finished" and machine.log(job) == "hello from 1\n"


def test_a_signal_that_ends_one_is_said(machine):
    job = machine.submit("--gpus", 2, "--launch", "ddp", "--wrap", "if [ $RANK = 1 ]; then kill -KILL $$; fi; exec sleep 600")
    ended = machine.wait(job)[0]
    assert ended["outcome"]["exit_code"] == 137
    assert "process 1 of 2 ended with signal 9; the others are told to end" in machine.log(job)


def both_run(machine, job, gates):
    machine.running(job)
    for gate in gates:
        gate.reached()


def at_gates(machine, trap, then="true"):
    """A job of two, each of which waits at a gate of its own and then does that."""
    gates = [Gate(machine, "0"), Gate(machine, "1")]
    waits = "; ".join(f"[ $RANK = {rank} ] && {{ {gate.command}; }}" for rank, gate in enumerate(gates))
    job = machine.submit("--gpus", 2, "--launch", "ddp", "--wrap", f"{trap}; {waits}; {then}")
    both_run(machine, job, gates)
    return job, gates


def test_when_one_fails_the_others_end(machine):
    job, gates = at_gates(machine, "trap 'echo told $RANK; exit 0' TERM", "exit 3")
    gates[0].open()
    ended = machine.wait(job)[0]
    assert (ended["status"], ended["outcome"]["exit_code"]) == ("Failed", 3)
    assert lines(machine, job) == ["gflow: process 0 of 2 ended with exit code 3; the others are told to end", "told 1"]


def test_each_is_told_once_to_end(machine):
    job, _ = at_gates(machine, "trap 'echo told $RANK; exit 0' TERM")
    machine.ok("gcancel", job)
    assert machine.wait(job)[0]["status"] == "Cancelled"
    assert lines(machine, job) == ["told 0", "told 1"]


def test_a_signal_reaches_each_once_and_not_the_launcher(machine):
    job, gates = at_gates(machine, "trap 'echo saved $RANK; exit 0' USR1")
    machine.ok("gcancel", "--signal", "USR1", job)
    assert machine.wait(job)[0]["status"] == "Finished", gates
    assert lines(machine, job) == ["saved 0", "saved 1"]


def test_none_outlives_a_launcher_that_is_killed(machine):
    job, _ = at_gates(machine, "true")
    kill(machine.job(job)["pid"])
    ended = machine.wait(job)[0]
    assert ended["status"] == "Failed" and ended["outcome"]["signal"] == 9


def test_restarts_are_counted(machine):
    job = machine.submit("--launch", "ddp", "--max-retries", 1, "--wrap", "echo $GFLOW_RESTART_COUNT; exit $((1 - GFLOW_RESTART_COUNT))")
    assert machine.wait(job)[0]["status"] == "Finished"
    assert machine.log(job).replace("gflow: process 0 of 1 ended with exit code 1\n", "") == "0\n1\n"


def test_a_command_that_is_not_there(machine):
    job = machine.submit("--launch", "ddp", "env", "nonsense-program")
    ended = machine.wait(job)[0]
    assert ended["outcome"]["exit_code"] == 127 and "nonsense-program" in machine.log(job)
    machine.ok("gbatch", "--launch", "torchrun", "--export", "ALL,PATH=/usr/bin:/bin", "true")
    assert machine.wait(2)[0]["outcome"]["exit_code"] == 127
    assert machine.log(2) == "gflow: cannot run 'torchrun': No such file or directory\n"


@pytest.mark.parametrize(("how", "gpus", "words"), [
    ("torchrun", 2, "--no-python /bin/bash {script} a b"),
    ("accelerate", 2, "launch --num_machines 1 --num_processes 2 --main_process_ip 127.0.0.1 --main_process_port {port}"
                      " --multi_gpu --no_python /bin/bash {script} a b"),
    ("accelerate", 0, "launch --num_machines 1 --num_processes 1 --main_process_ip 127.0.0.1 --main_process_port {port}"
                      " --cpu --no_python /bin/bash {script} a b"),
])
def test_others_launchers_get_what_they_need(machine, how, gpus, words):
    """What torchrun does not get as words it reads."""
    program = machine.work / how
    program.write_text('#!/bin/bash\necho "$PET_NPROC_PER_NODE $PET_NNODES $PET_MASTER_ADDR $MASTER_PORT ${GFLOW_LAUNCH-none} ${LOCAL_RANK-none}"\necho "$@"\n')
    program.chmod(0o755)
    (machine.work / "train.sh").write_text("echo never\n")
    job = machine.submit("--gpus", gpus, "--launch", how, "train.sh", "a", "b", env={"PATH": f"{machine.work}:{machine.environment['PATH']}"})
    assert machine.wait(job)[0]["status"] == "Finished"
    told, given = machine.log(job).splitlines()
    processes, nodes, address, port, launch, rank = told.split()
    assert (processes, nodes, address, launch, rank) == (str(max(gpus, 1)), "1", "127.0.0.1", "none", "none")
    script = given.split("/bin/bash ")[1].split()[0]
    assert given == words.format(port=port, script=script)


def test_what_is_refused(machine):
    assert "--nodes" in machine.run("gbatch", "--launch", "ddp", "--nodes", 2, "true").err
    ran = machine.run("gbatch", "--launch", "mpi", "true")
    assert ran.code == 2 and "ddp, torchrun, accelerate" in ran.err
    job = machine.submit("--export", "ALL,GFLOW_LAUNCH=mpi", "true")
    assert machine.wait(job)[0]["outcome"]["exit_code"] == 2 and "it can be ddp, torchrun or accelerate" in machine.log(job)


def test_a_job_of_a_job_is_one_process(machine):
    """What one of several processes submits is not launched as it is."""
    job = machine.submit("--gpus", 2, "--launch", "ddp", "--wrap", "[ $RANK = 1 ] || GFLOW_LAUNCH=ddp gbatch --wait echo inner")
    assert machine.wait(job)[0]["status"] == "Finished"
    assert machine.log(2) == "inner\n"
