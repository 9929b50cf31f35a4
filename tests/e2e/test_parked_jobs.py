# SPDX-License-Identifier: Apache-2.0
"""Jobs whose GPU memory is in host memory while they are suspended: gflowd, gflow-park and jobs on the machine of tests/fake_cuda."""

import json
import os
import select
import time

from fake_gpu import CONTEXT, FAKE, GIB, MIB, OLD_FAKE, Program
from machine import PATIENCE, stands

CLIENT = FAKE / "cuda_client"
EACH = GIB + CONTEXT


def becomes(condition):
    """Returns once it is so: of what nothing tells when it changes."""
    latest = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < latest, "it did not become so"


def up(machine):
    """Jobs have its first GPU only, and it is known whether they can be parked."""
    machine.up()
    machine.ok("gctl", "drain", "gpu", "1")
    becomes(lambda: parking(machine) is not None)


def killed(machine):
    """The next one is up."""
    machine.kill_daemon()
    up(machine)


def parking(machine):
    """What gflow doctor says of it; None as long as it is being found out."""
    checks = {check["name"]: check for check in json.loads(machine.run("gflow", "doctor", "--json").out)["checks"]}
    check = checks.get("GPU memory of suspended jobs")
    return check and check["text"]


class GpuJob(Program):
    """A job whose program uses the GPU as it is told."""

    def __init__(self, machine, name, *request, before=""):
        asks, answers = machine.work / f"{name}.asks", machine.work / f"{name}.answers"
        for pipe in (asks, answers):
            os.mkfifo(pipe)
        self.machine = machine
        self.asks, self.answers = os.fdopen(os.open(asks, os.O_RDWR), "w"), os.fdopen(os.open(answers, os.O_RDWR))
        self.job = machine.submit(*request, "--name", name, "bash", "-c", f"exec {before}{CLIENT} proc < {asks} > {answers}")

    def text(self, command, *numbers):
        self.asks.write(" ".join([command, *map(str, numbers)]) + "\n")
        self.asks.flush()
        assert select.select([self.answers], [], [], PATIENCE)[0], f"no answer to {command}"
        return self.answers.readline()

    def fill(self, amount, device=0):
        self.start(device)
        self.block = self.get("alloc", amount)
        self.sum = self.get("fill", self.block, MIB, self.job)
        return self

    def has_its_memory(self):
        return self.get("sum", self.block, MIB) == self.sum

    def shown(self):
        return self.machine.job(self.job)

    def until(self, *states):
        """The job once its GPU memory is so; None is where it always is."""
        return self.machine.until(self.job, lambda job: (job["parked"] and job["parked"]["state"]) in states)

    def cancel(self):
        self.machine.ok("gcancel", self.job)
        self.machine.wait(self.job)


LESSER = ("--gpus", "7G,0.5", "--preemptible=suspend")
URGENT = ("--gpus", "1", "--priority", "200")


def test_an_urgent_job_has_all_of_the_gpu_and_those_before_it_their_memory_after_it(gpu_machine):
    up(gpu_machine)
    lesser = [GpuJob(gpu_machine, name, *LESSER).fill(GIB) for name in ("one", "two")]
    urgent = GpuJob(gpu_machine, "urgent", *URGENT).fill(15 * GIB)
    assert [job.shown()["status"] for job in lesser] == ["Suspended", "Suspended"]
    for job in lesser:
        becomes(lambda job=job: stands(job.shown()["pid"]))
        assert job.shown()["parked"] == {"state": "parked", "bytes": EACH, "refused": ""}
        assert "Parked        1.29G of GPU memory are in host memory\n" in gpu_machine.ok("gjob", "show", job.job)
        assert "is suspended; its GPU memory is in host memory." in gpu_machine.ok("gjob", "why", job.job)
    assert urgent.has_its_memory()
    urgent.cancel()
    assert all(job.has_its_memory() for job in lesser)
    for job in lesser:
        assert job.until(None)["status"] == "Running"
    assert not list(gpu_machine.state.glob("attempts/*/park*"))


def test_one_that_cannot_be_parked_goes_on_and_the_urgent_one_waits(gpu_machine):
    up(gpu_machine)
    lesser = GpuJob(gpu_machine, "lesser", *LESSER).fill(GIB)
    lesser.get("managed", MIB)
    urgent = GpuJob(gpu_machine, "urgent", *URGENT)
    why = lesser.until("none")["parked"]["refused"]
    assert why.startswith("the driver cannot take away what process ")
    assert f"Parked        suspended, it keeps its GPU memory: {why[:20]}" in gpu_machine.ok("gjob", "show", lesser.job)
    gpu_machine.running(lesser.job)
    assert lesser.has_its_memory() and urgent.shown()["status"] == "Queued"
    # That is not tried again, nor is it after a restart.
    killed(gpu_machine)
    gpu_machine.ok("gjob", "suspend", lesser.job)
    becomes(lambda: stands(lesser.shown()["pid"]))
    assert lesser.shown()["parked"] == {"state": "none", "bytes": 0, "refused": why}
    gpu_machine.ok("gjob", "resume", lesser.job)
    assert lesser.has_its_memory()
    lesser.cancel()
    urgent.fill(15 * GIB)


def test_gflowd_killed_at_any_moment_is_followed_by_one_who_brings_it_on(gpu_machine):
    """What gflow-park was at when its daemon was killed it may end itself, or leave half done, wherever it was."""
    up(gpu_machine)
    lesser = GpuJob(gpu_machine, "lesser", *LESSER).fill(GIB)
    for call in (1, 6, 11):
        # gflow-park is killed in that call of the driver, and its daemon after it.
        gpu_machine.environment["GFLOW_FAKE_CUDA_KILLED_AT"] = str(call)
        killed(gpu_machine)
        gpu_machine.ok("gjob", "suspend", lesser.job)
        becomes(lambda: gpu_machine.get("/api/v1/daemon")["warnings"] or lesser.shown()["parked"]["state"] == "parked")
        del gpu_machine.environment["GFLOW_FAKE_CUDA_KILLED_AT"]
        killed(gpu_machine)
        pid = lesser.until("parked")["pid"]
        becomes(lambda pid=pid: stands(pid))
        with gpu_machine.fake.program() as other:
            other.start()
            other.get("free", other.get("alloc", 15 * GIB))
        gpu_machine.ok("gjob", "resume", lesser.job)
        killed(gpu_machine)
        assert lesser.has_its_memory(), call
        assert lesser.until(None)["status"] == "Running"


def test_killed_again_and_again_while_an_urgent_job_comes_and_goes(gpu_machine):
    """Each step may be the last one of its daemon."""
    up(gpu_machine)
    lesser = GpuJob(gpu_machine, "lesser", *LESSER).fill(GIB)
    for number in range(6):
        urgent = GpuJob(gpu_machine, f"urgent{number}", *URGENT)
        if number % 2 == 0:
            killed(gpu_machine)
        urgent.fill(15 * GIB)
        if number % 3 == 0:
            killed(gpu_machine)
        assert urgent.has_its_memory()
        gpu_machine.ok("gcancel", urgent.job)
        killed(gpu_machine)
        assert lesser.has_its_memory()
        lesser.until(None)


def test_it_waits_for_the_memory_of_its_gpu_and_says_so(gpu_machine):
    up(gpu_machine)
    lesser = GpuJob(gpu_machine, "lesser", *LESSER).fill(GIB)
    gpu_machine.ok("gjob", "suspend", lesser.job)
    lesser.until("parked")
    with gpu_machine.fake.program() as foreign:
        foreign.start()
        foreign.get("alloc", 15 * GIB)
        gpu_machine.ok("gjob", "resume", lesser.job)
        becomes(lambda: any("that are to come back" in warning for warning in gpu_machine.get("/api/v1/daemon")["warnings"]))
        assert lesser.shown()["parked"]["state"] == "ending"
        assert "1.29G of GPU memory come back from host memory\n" in gpu_machine.ok("gjob", "show", lesser.job)
    assert lesser.has_its_memory()
    lesser.until(None)


def test_it_is_said_whether_it_can_be_done(gpu_machine):
    gpu_machine.environment["LD_LIBRARY_PATH"] = f"{OLD_FAKE}:{FAKE}"
    up(gpu_machine)
    assert parking(gpu_machine).startswith("none: the NVIDIA driver is older than 570")
    lesser = GpuJob(gpu_machine, "lesser", *LESSER)
    gpu_machine.running(lesser.job)
    gpu_machine.ok("gjob", "suspend", lesser.job)
    assert lesser.shown()["parked"] is None
    lesser.cancel()
    gpu_machine.environment["LD_LIBRARY_PATH"] = str(FAKE)
    gpu_machine.down()
    up(gpu_machine)
    assert parking(gpu_machine) == "gflow-park, of jobs with one NVIDIA GPU, by the CUDA driver"
