# SPDX-License-Identifier: Apache-2.0
"""Jobs and GPUs they were not given: /dev/zero stands for GPU 0, /dev/full for GPU 1, which any program can open."""

import os
import re

import pytest
from machine import Gate, Machine, as_no_root

GPUS = """
gpus:
  - {model: H100, device_nodes: ["1:5"]}
  - {model: H100, device_nodes: ["1:7"]}
"""
WORDS = {"filter": "device filter of its control group", "landlock": "landlock"}
TELL = (
    'echo "$GFLOW_GPU_INDICES:$CUDA_VISIBLE_DEVICES"; '
    'for node in /dev/zero /dev/full; do if (: < $node) 2>/dev/null; then echo $node; fi; done'
)


class Kept(Machine):
    """Whoever's it is: what is typed there is typed by its user."""

    def __init__(self, isolation):
        super().__init__(config=f'[runner]\ngpu_isolation = "{isolation}"\n[sharing]\nallow_see_all = true\n')
        (self.work / "machine.yaml").write_text(GPUS)
        self.devices = f"sim:{self.work / 'machine.yaml'}"
        self.before = []

    def give_away(self):
        self.before, _ = as_no_root(self)

    def run(self, *command, **more):
        return super().run(*self.before, *command, **more)

    def gate(self):
        gate = Gate(self)
        for pipe in (gate.there, gate.go):
            pipe.chmod(0o666)
        return gate


@pytest.fixture(params=["filter", "landlock"])
def kept(request):
    """Jobs of root are kept by a filter, those of somebody else by Landlock."""
    if request.param == "filter" and os.geteuid() != 0:
        pytest.skip("only root can have a device filter")
    made = Kept(request.param)
    made.by = request.param
    try:
        if request.param == "landlock":
            made.give_away()
        made.up()
        yield made
    finally:
        made.close()


def told(machine, *words):
    job = machine.submit(*words, "bash", "-c", TELL)
    machine.wait(job)
    return machine.log(job).split("\n")[:-1]


def facts(machine, job):
    return dict(re.findall(r"^ *(\S.*?)  +(.*)$", machine.ok("gjob", "show", str(job)), re.MULTILINE))


def test_a_job_opens_its_own_gpu_and_counts_from_zero(kept):
    gate = kept.gate()
    first = kept.submit("--gpus", "1", "bash", "-c", f"{TELL}; {gate.command}")
    gate.reached()
    assert told(kept, "--gpus", "1") == ["1:0", "/dev/full"]
    assert told(kept) == [":"]
    assert facts(kept, first)["Isolation"] == WORDS[kept.by]
    waiting = kept.submit("--gpus", "2", "true")
    assert facts(kept, waiting)["Isolation"].startswith({"filter": "cgroup v", "landlock": "landlock"}[kept.by])
    kept.ok("gcancel", waiting)
    assert kept.job(first)["gpu_isolation"] == kept.by
    gate.open()
    kept.wait(first)
    assert kept.log(first).split("\n")[:2] == ["0:0", "/dev/zero"]
    assert told(kept, "--gpus", "2") == ["0,1:0,1", "/dev/zero", "/dev/full"]
    assert kept.job(first)["gpu_isolation"] is None


def test_who_asked_to_see_all_opens_all(kept):
    job = kept.submit("--gpus=-1", "bash", "-c", TELL)
    kept.wait(job)
    assert kept.log(job) == ":0,1\n/dev/zero\n/dev/full\n"


def test_it_is_in_force_after_a_restart_with_another_setting(kept):
    gate = kept.gate()
    job = kept.submit("--gpus", "1", "bash", "-c", f"{gate.command}; {TELL}")
    gate.reached()
    kept.config("")
    kept.kill_daemon()
    kept.up()
    assert kept.job(job)["gpu_isolation"] == kept.by
    assert facts(kept, job)["Isolation"] == WORDS[kept.by]
    assert told(kept, "--gpus", "1") == ["1:1", "/dev/zero", "/dev/full"]
    gate.open()
    kept.wait(job)
    assert kept.log(job) == "0:0\n/dev/zero\n"


def test_an_allocation_that_its_job_could_not_open_is_refused(kept):
    job = kept.submit("bash", "-c", "galloc --gpus 1 true; echo $?; galloc --help >/dev/null")
    kept.wait(job)
    said = kept.log(job)
    assert re.search(rf"process \d+ belongs to job {job}, which cannot open GPUs that it was not given", said), said
    assert "'gbatch --gpus'" in said and "\n0\n" not in said
    kept.ok("galloc", "--gpus", "1", "true")


def test_gpus_whose_device_nodes_are_not_known(kept):
    (kept.work / "machine.yaml").write_text(GPUS + "  - {model: H100}\n  - {model: MI300X, memory_total: 192G, vendor: amd}\n")
    kept.ok("gflowd", "restart")
    said = kept.run("gflow", "doctor").out
    assert "not of jobs on GPU 2-3: what opens it is not known" in re.sub(r"\s+", " ", said), said
    assert re.search(r"warn +GPU isolation", said), said
    assert "jobs on GPU 2-3 can open GPUs they were not given: what opens it is not known" in (kept.logs / "gpu_resource_manager.log").read_text()
    gate = kept.gate()
    job = kept.submit("--gpus", "1(MI300X)", "bash", "-c", f"{TELL}; {gate.command}")
    gate.reached()
    assert kept.job(job)["gpu_isolation"] == kept.by
    gate.open()
    kept.wait(job)
    assert kept.log(job).split("\n")[1:] == [""], "of other vendors it opens none"


def test_doctor_says_by_what(kept):
    said = kept.run("gflow", "doctor").out
    assert re.search(r"GPU isolation +" + {"filter": r"cgroup v2 device filter", "landlock": "landlock"}[kept.by], said), said


def test_what_cannot_be_had_keeps_gflowd_from_starting():
    machine = Kept("filter")
    try:
        machine.give_away()
        ran = machine.run("gflowd", "up", "--devices", machine.devices)
        assert ran.code != 0
        assert 'jobs cannot be kept from GPUs they were not given by gpu_isolation = "filter" in [runner] of gflow.toml' in ran.err
        assert '"landlock" does not' in ran.err
    finally:
        machine.close()


def test_a_user_of_his_own_is_kept_from_nothing_unless_he_says_so():
    machine = Kept("auto")
    try:
        machine.up()
        assert told(machine, "--gpus", "1") == ["0:0", "/dev/zero", "/dev/full"]
        gate = machine.gate()
        job = machine.submit("--gpus", "1", "bash", "-c", gate.command)
        gate.reached()
        assert machine.job(job)["gpu_isolation"] == "none"
        assert facts(machine, job)["Isolation"] == "none: variables alone name its GPUs"
        gate.open()
        machine.wait(job)
        assert re.search("GPU isolation +none: variables alone", machine.run("gflow", "doctor").out)
    finally:
        machine.close()


def test_a_value_there_is_not(gpu_machine):
    gpu_machine.config('[runner]\ngpu_isolation = "all"\n')
    ran = gpu_machine.run("gflowd", "up")
    assert ran.code != 0 and "'all' is not one of auto, filter, landlock, none" in ran.err
