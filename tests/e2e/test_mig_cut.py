# SPDX-License-Identifier: Apache-2.0
"""Slices of MIG that are made as jobs request them: gflowd, gflow-gpumon and gflow-mig on a driver library that can be cut."""

import fcntl
import json
import os
import signal
import time

import pytest
from machine import BIN, PATIENCE, Gate, Machine

FAKE_NVML = BIN.parent / "fake_nvml"
SHOW = "echo $CUDA_VISIBLE_DEVICES"
ALL = '[sharing]\ncut_gpus = "all"\n'
BARE = ("uuid: GPU-a, mig: []", "uuid: GPU-b, mig: []")
BEING_MADE = "3g.40gb is being made"


class Cut(Machine):
    """A machine whose NVIDIA driver library is ours: what is made of its GPUs is in a file beside that of the driver."""

    def __init__(self, config=ALL, **environment):
        super().__init__("nvml", config)
        self.file = self.work / "driver.yaml"
        self.made_file = self.work / "driver.yaml.made"
        self.environment |= {"LD_LIBRARY_PATH": str(FAKE_NVML), "GFLOW_FAKE_NVML": str(self.file)} | environment

    def driver(self, *gpus, **faults):
        calls = "".join(f"    {call}: {what}\n" for call, what in faults.items())
        part = self.work / "driver.part"
        part.write_text(
            "gpus:\n" + "".join(f"  - {{model: H100, {gpu}}}\n" for gpu in gpus) + (f"nvml:\n  calls:\n{calls}" if faults else "")
        )
        part.rename(self.file)

    def made(self):
        """(GPU, profile, first memory slice, UUID) of the instances that were made."""
        if not self.made_file.exists():
            return []
        return [(one["gpu"], one["profile"], one["start"], one["uuid"]) for one in json.loads(self.made_file.read_text())["instances"]]

    def is_now_cut(self, *instances):
        """By somebody else, who gives none of them a device."""
        part = self.work / "made.part"
        part.write_text(json.dumps({"counted": 7, "instances": [{"gpu": "GPU-a"} | one | {"uuid": ""} for one in instances]}))
        part.rename(self.made_file)

    def listed(self):
        return self.get("/api/v1/machine")["nodes"][0]["devices"]

    def why(self, job):
        return [one["text"] for one in self.job(job)["blockers"]]

    def until_said(self, job, text):
        while True:  # what keeps a job waiting changes, and the job does not
            revision = self.get("/api/v1/jobs?limit=1")["revision"]
            if any(text in one for one in self.why(job)):
                return
            self.get(f"/api/v1/changes?revision={revision}")

    def helpers(self):
        """Processes of gflow-mig that are ours."""
        found = []
        for entry in os.listdir("/proc"):
            try:
                words = open(f"/proc/{entry}/cmdline", "rb").read().split(b"\0")
            except (OSError, ValueError):
                continue
            if words[0].endswith(b"/gflow-mig") and str(self.state).encode() in b" ".join(words):
                found.append(int(entry))
        return found


@pytest.fixture
def cut():
    made = Cut()
    try:
        yield made
    finally:
        made.close()


def until(wanted):
    """For what only the file system tells, and nobody who could be asked."""
    end = time.monotonic() + PATIENCE
    while not wanted():
        assert time.monotonic() < end, "it does not happen"
        os.sched_yield()


def overlaps(instances):
    sizes = {"1g.10gb": 1, "1g.20gb": 2, "2g.20gb": 2, "3g.40gb": 4, "4g.40gb": 4, "7g.80gb": 8}
    taken = [(gpu, slot) for gpu, profile, start, _ in instances for slot in range(start, start + sizes[profile])]
    return len(taken) != len(set(taken))


def test_jobs_of_many_profiles_have_their_slices_made(cut):
    cut.driver(*BARE)
    cut.up()
    assert cut.listed() == []
    text = cut.ok("ginfo")
    assert "H100-80G GPU-a has room for a slice of 1g.10gb, 1g.10gb+me, 1g.20gb, 2g.20gb, 3g.40gb, 4g.40gb, 7g.80gb" in text
    assert "No GPUs" not in text
    would = cut.ok("gbatch", "--dry-run", "--gpus", "1(3g.40gb)", "true")
    assert "3g.40gb" in would
    profiles = ["3g.40gb", "1g.10gb", "2g.20gb", "1g.10gb", "7g.80gb", "4g.40gb", "3g.40gb", "1g.20gb", "7g.80gb", "1g.10gb"]
    jobs = [cut.submit("--gpus", f"1({profile})", "bash", "-c", SHOW) for profile in profiles]
    jobs.append(cut.submit("--gpus", "2(2g.20gb)", "bash", "-c", SHOW))
    cut.wait(*jobs)
    assert {cut.job(job)["status"] for job in jobs} == {"Finished"}
    logs = [cut.log(job).strip() for job in jobs]
    assert all(log.startswith("MIG-") for log in logs), logs
    assert len(set(logs[-1].split(","))) == 2
    assert not overlaps(cut.made()) and all(uuid for *_, uuid in cut.made())
    refused = cut.run("gbatch", "--gpus", "1(3g.20gb)", "true")
    assert refused.code != 0 and "H100-1g.10gb, H100-1g.10gb+me, H100-1g.20gb, H100-2g.20gb, H100-3g.40gb" in refused.err
    refused = cut.run("gbatch", "--gpus", "1", "true")
    assert refused.code != 0 and "--gpus '1(H100-1g.10gb)'" in refused.err


def test_slices_in_use_and_those_of_others_are_left(cut):
    cut.driver("uuid: GPU-a, mig: [{profile: 3g.40gb, uuid: MIG-his}]", "uuid: GPU-b")
    cut.up()
    gate = Gate(cut)
    half = cut.submit("--gpus", "1(4g.40gb)", "bash", "-c", f"{SHOW}; {gate.command}")
    gate.reached()
    [(_, _, start, mine)] = cut.made()
    assert start == 0 and cut.log(half) == f"{mine}\n"
    whole = cut.submit("--gpus", "1(7g.80gb)", "bash", "-c", SHOW)
    small = cut.submit("--gpus", "1(1g.10gb)", "bash", "-c", SHOW)
    assert cut.why(whole)[-1] == "Slice: no GPU has room for 7g.80gb"
    assert cut.why(small)[1] == "Slice: no GPU has room for 1g.10gb"
    his = cut.submit("--gpus", "1(3g.40gb)", "bash", "-c", SHOW)
    cut.wait(his)
    assert cut.log(his) == "MIG-his\n"
    gate.open()
    cut.wait(half, small)
    # The place of what gflow made was needed, and that of the other one would have been, too.
    assert [profile for _, profile, _, _ in cut.made()] == ["1g.10gb"]
    assert "MIG-his" in {one["uuid"] for one in cut.listed()}
    assert cut.why(whole) != []


@pytest.mark.parametrize(
    ("call", "code", "said"),
    [
        ("nvmlDeviceCreateGpuInstanceWithPlacement", 23, "Insufficient Resources"),
        ("nvmlDeviceCreateGpuInstanceWithPlacement", 4, "only root may cut a GPU"),
        ("nvmlGpuInstanceCreateComputeInstance", 23, "Insufficient Resources"),
        ("nvmlDeviceCreateGpuInstanceWithPlacement", "abort", "gflow-mig ended without a word"),
    ],
)
def test_a_driver_that_refuses_is_told_of_and_asked_again(cut, call, code, said):
    cut.driver(BARE[0], **{call: code})
    cut.up()
    job = cut.submit("--gpus", "1(3g.40gb)", "bash", "-c", SHOW)
    cut.until_said(job, said)
    until(lambda: cut.made() == [])  # it may be asked again already, and what it began is undone again
    cut.driver(BARE[0])
    cut.wait(job)
    assert [profile for _, profile, _, _ in cut.made()] == ["3g.40gb"]


def test_a_slice_that_the_driver_says_is_in_use_stays(cut):
    cut.driver(BARE[0], nvmlComputeInstanceDestroy=19)
    cut.up()
    first = cut.submit("--gpus", "1(3g.40gb)", "bash", "-c", SHOW)
    cut.wait(first)
    [before] = cut.made()
    whole = cut.submit("--gpus", "1(7g.80gb)", "bash", "-c", SHOW)
    log = cut.logs / "gpu_resource_manager.log"
    until(lambda: "In use by another client" in log.read_text())
    assert cut.made() == [before]
    again = cut.submit("--gpus", "1(3g.40gb)", "--priority", "200", "bash", "-c", SHOW)
    cut.wait(again)
    assert cut.log(again) == cut.log(first)
    cut.driver(BARE[0])
    cut.wait(whole)
    assert [profile for _, profile, _, _ in cut.made()] == ["7g.80gb"]


MAKING = [
    "nvmlDeviceCreateGpuInstanceWithPlacement",
    "nvmlGpuInstanceGetComputeInstanceProfileInfo",
    "nvmlGpuInstanceCreateComputeInstance",
]


@pytest.mark.parametrize("call", MAKING)
def test_killed_while_a_slice_is_made(cut, call):
    """The daemon is killed with -9 while gflow-mig hangs before each call that makes something."""
    cut.driver(BARE[0], **{call: "hang"})
    cut.up()
    job = cut.submit("--gpus", "1(3g.40gb)", "bash", "-c", SHOW)
    cut.until_said(job, BEING_MADE)
    if call != MAKING[0]:
        until(lambda: cut.made() != [])
        assert [uuid for *_, uuid in cut.made()] == [""]
    cut.kill_daemon()
    until(lambda: cut.helpers() == [])
    cut.driver(BARE[0])
    cut.up()
    cut.wait(job)
    [(_, profile, _, uuid)] = cut.made()
    assert profile == "3g.40gb" and cut.log(job) == f"{uuid}\n"
    assert len(cut.listed()) == 1


@pytest.mark.parametrize("call", ["nvmlComputeInstanceDestroy", "nvmlGpuInstanceDestroy"])
def test_killed_while_a_slice_is_removed(cut, call):
    cut.driver(BARE[0], **{call: "hang"})
    cut.up()
    cut.wait(cut.submit("--gpus", "1(3g.40gb)", "true"))
    whole = cut.submit("--gpus", "1(7g.80gb)", "bash", "-c", SHOW)
    log = cut.logs / "gpu_resource_manager.log"
    until(lambda: "is to be removed" in log.read_text())
    if call == "nvmlGpuInstanceDestroy":
        until(lambda: [uuid for *_, uuid in cut.made()] == [""])
    cut.kill_daemon()
    until(lambda: cut.helpers() == [])
    cut.driver(BARE[0])
    cut.up()
    cut.wait(whole)
    [(_, profile, _, uuid)] = cut.made()
    assert profile == "7g.80gb" and cut.log(whole) == f"{uuid}\n"


def kill_helpers(cut):
    for helper in cut.helpers():
        os.kill(helper, signal.SIGKILL)


def test_half_of_a_slice_is_removed_and_the_rest_is_too(cut):
    """gflow-mig is killed between its two calls, and the daemon lives: what a reading has in between is an instance without a device."""
    cut.driver(BARE[0])
    cut.up()
    cut.wait(cut.submit("--gpus", "1(3g.40gb)", "true"))
    cut.driver(BARE[0], nvmlGpuInstanceDestroy="hang")
    whole = cut.submit("--gpus", "1(7g.80gb)", "bash", "-c", SHOW)
    until(lambda: [uuid for *_, uuid in cut.made()] == [""])
    until(lambda: cut.listed() == [])
    cut.driver(BARE[0])
    kill_helpers(cut)
    cut.wait(whole)
    assert [profile for _, profile, _, _ in cut.made()] == ["7g.80gb"]


def test_an_instance_of_others_without_a_device_goes_and_the_place_is_free(cut):
    cut.driver(BARE[0])
    cut.is_now_cut({"id": 1, "profile": "7g.80gb", "start": 0, "size": 8})
    cut.up()
    job = cut.submit("--gpus", "1(3g.40gb)", "bash", "-c", SHOW)
    cut.until_said(job, "no GPU has room for 3g.40gb")
    cut.is_now_cut()
    cut.wait(job)
    assert cut.log(job).startswith("MIG-")


def test_what_somebody_else_made_in_its_place_is_not_removed(cut):
    """With the number of the one that gflow made, as drivers use them again, and without a device."""
    cut.driver(BARE[0])
    cut.up()
    cut.wait(cut.submit("--gpus", "1(3g.40gb)", "true"))
    [made] = json.loads(cut.made_file.read_text())["instances"]
    cut.is_now_cut(made)
    whole = cut.submit("--gpus", "1(7g.80gb)", "true")
    cut.until_said(whole, "no GPU has room for 7g.80gb")
    assert [(profile, uuid) for _, profile, _, uuid in cut.made()] == [("3g.40gb", "")]


def test_what_is_half_made_is_finished_whatever_the_driver_says_meanwhile(cut):
    cut.driver(BARE[0], nvmlGpuInstanceCreateComputeInstance="hang")
    cut.up()
    job = cut.submit("--gpus", "1(3g.40gb)", "bash", "-c", SHOW)
    until(lambda: cut.made() != [])
    cut.driver(BARE[0], nvmlDeviceGetHandleByUUID=15)
    kill_helpers(cut)
    log = cut.logs / "gpu_resource_manager.log"
    until(lambda: "is not known: GPU is lost" in log.read_text())
    cut.driver(BARE[0])
    cut.wait(job)
    assert [f"{uuid}\n" for *_, uuid in cut.made()] == [cut.log(job)]


def test_one_that_hangs_keeps_its_gpu_and_no_other(cut):
    cut.driver(*BARE, nvmlDeviceCreateGpuInstanceWithPlacement="abort")
    cut.up()
    gone = cut.submit("--gpus", "1(3g.40gb)", "true")
    cut.until_said(gone, "gflow-mig ended without a word")
    cut.ok("gcancel", str(gone))
    cut.driver(*BARE)
    job = cut.submit("--gpus", "1(1g.10gb)", "bash", "-c", SHOW)
    cut.wait(job)
    assert [profile for _, profile, _, _ in cut.made()] == ["1g.10gb"]


def test_what_can_be_cut_is_known_though_the_driver_does_not_tell(cut):
    cut.driver(BARE[0])
    cut.up()
    cut.driver(BARE[0], nvmlDeviceGetGpuInstances=999)
    until(lambda: "does not tell how it can be cut" in cut.ok("ginfo"))
    job = cut.submit("--gpus", "1(3g.40gb)", "true")
    cut.until_said(job, "the driver does not tell how it can be cut")
    other = cut.submit("--gpus", "1(7g.80gb)", "true")
    cut.driver(BARE[0])
    cut.wait(job, other)


def test_nothing_is_asked_twice_at_once(cut):
    """One who holds the lock has not come back from the driver yet: that is told, and the slice is made after that."""
    cut.driver(BARE[0])
    cut.up()
    with open(cut.state / "gflow-mig.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        job = cut.submit("--gpus", "1(3g.40gb)", "bash", "-c", SHOW)
        cut.until_said(job, "an earlier gflow-mig has not come back from the driver")
        assert cut.made() == []
    cut.wait(job)
    assert len(cut.made()) == 1


def test_a_job_that_is_cancelled_leaves_a_slice_that_others_have(cut):
    cut.driver(BARE[0], nvmlGpuInstanceCreateComputeInstance="hang")
    cut.up()
    gone = cut.submit("--gpus", "1(3g.40gb)", "true")
    until(lambda: cut.made() != [])
    cut.ok("gcancel", str(gone))
    cut.driver(BARE[0])
    kill_helpers(cut)
    other = cut.submit("--gpus", "1(3g.40gb)", "bash", "-c", SHOW)
    cut.wait(other)
    assert [f"{uuid}\n" for *_, uuid in cut.made()] == [cut.log(other)]


def test_off_nothing_is_made():
    machine = Cut(config="")
    try:
        machine.driver(BARE[0])
        machine.up()
        [gpu] = machine.listed()
        assert not gpu["usable"] and "nvidia-smi mig -cgi" in gpu["trouble"]
        assert machine.get("/api/v1/machine")["nodes"][0]["mig_room"] == []
        assert machine.run("gbatch", "--gpus", "1(3g.40gb)", "true").code != 0
        assert machine.made() == []
        machine.config('[sharing]\ncut_gpus = "nonsense"\n')
        refused = machine.run("gctl", "config", "reload")
        assert refused.code != 0 and "no UUID of a GPU" in refused.err
        machine.config('[sharing]\ncut_gpus = "GPU-other"\n')
        machine.ok("gctl", "config", "reload")
        assert len(machine.listed()) == 1
        machine.config('[sharing]\ncut_gpus = "GPU-other, GPU-a"\n')
        machine.ok("gctl", "config", "reload")
        job = machine.submit("--gpus", "1(3g.40gb)", "bash", "-c", SHOW)
        machine.wait(job)
        assert machine.log(job).startswith("MIG-")
    finally:
        machine.close()


def test_who_may_not_is_told_what_to_do():
    machine = Cut(GFLOW_FAKE_NVML_UNPRIVILEGED="1")
    try:
        machine.driver(BARE[0])
        machine.up()
        [gpu] = machine.listed()
        assert not gpu["usable"] and "Insufficient Permissions" in gpu["trouble"]
        assert "cannot be cut: the driver does not tell how it can be cut: Insufficient Permissions" in machine.ok("ginfo")
        doctor = machine.run("gflow", "doctor")
        assert "run gflowd as a service of the system" in doctor.out
        assert machine.run("gbatch", "--gpus", "1(3g.40gb)", "true").code != 0
    finally:
        machine.close()


def test_a_gpu_that_is_cut_is_drained_by_its_uuid(cut):
    cut.driver(*BARE)
    cut.up()
    gate = Gate(cut)
    holds = cut.submit("--gpus", "1(3g.40gb)", "bash", "-c", f"{SHOW}; {gate.command}")
    gate.reached()
    [(first, _, _, _)] = cut.made()
    other = "GPU-b" if first == "GPU-a" else "GPU-a"
    assert f"{other} is drained" in cut.ok("gctl", "drain", "gpu", other, "--reason", "its fan is loud")
    room = {one["gpu"]: one for one in cut.get("/api/v1/machine")["nodes"][0]["mig_room"]}
    assert room[other]["drained"] and room[other]["profiles"] == [] and room[first]["profiles"] != []
    assert f"{other} drained: its fan is loud" in cut.ok("ginfo")
    health = cut.get("/api/v1/gpu/health")
    assert health["status"] == "degraded" and f"{other}: drained: its fan is loud" in health["problems"][0]
    assert f"a cut GPU of node {cut.get('/api/v1/machine')['nodes'][0]['name']}" in cut.ok("gctl", "show")
    assert "none is made: drained: its fan is loud" in cut.run("gflow", "doctor").out
    # What waits is taken though there is no room, and starts on what is left, or not at all.
    whole = cut.submit("--gpus", "1(7g.80gb)", "true")
    half = cut.submit("--gpus", "1(4g.40gb)", "bash", "-c", SHOW)
    cut.ok("gctl", "drain", "gpu", first)
    assert "Slice: 7g.80gb is not made: the GPU is drained" in cut.why(whole)[-1]
    slice_ = cut.listed()[0]
    assert all(one["drained"] for one in cut.listed())
    refused = cut.run("gctl", "resume", "gpu", str(slice_["index"]))
    assert refused.code != 0 and f"is a slice of {first}, which is drained: resume that" in refused.err
    cut.kill_daemon()  # it is drained still
    cut.up()
    gate.open()
    cut.wait(holds)
    assert {gpu for gpu, *_ in cut.made()} == {first}
    cut.ok("gctl", "resume", "gpu", first)
    cut.wait(whole, half)
    assert {gpu for gpu, *_ in cut.made()} == {first}
    cut.ok("gctl", "resume", "gpu", other)
    assert cut.ok("gctl", "show") == "nothing is drained\n"


def test_what_the_driver_refuses_is_seen_by_who_looks_after_the_machine(cut):
    cut.driver(BARE[0], nvmlDeviceCreateGpuInstanceWithPlacement=23)
    cut.up()
    job = cut.submit("--gpus", "1(3g.40gb)", "true")
    cut.until_said(job, "Insufficient Resources")
    assert "refused when last tried: 3g.40gb: " in cut.run("gflow", "doctor").out
    cut.driver(BARE[0])
    cut.wait(job)


@pytest.mark.parametrize(
    ("gpus", "options", "said"),
    [
        ("1(1g.10gb),20G", (), "with 20G of memory each and a slice of that profile has less"),
        ("8(1g.10gb+me)", (), "can be cut into 1 of these at most"),
        ("1(1g.10gb)", ("--nodes", "2"), "slices are made for jobs on one node alone"),
        ("1(1g.10gb)", ("--cpus", "1000000"), "1000000 CPUs"),
    ],
)
def test_what_could_never_be_made_is_refused_for_what_it_lacks(cut, gpus, options, said):
    cut.driver(BARE[0])
    cut.up()
    refused = cut.run("gbatch", "--gpus", gpus, *options, "true")
    assert refused.code != 0 and said in refused.err and "there are only" not in refused.err


def test_a_simulated_machine_is_cut_too():
    machine = Machine(config=ALL)
    try:
        file = machine.work / "lab.yaml"
        file.write_text("gpus:\n  - {model: H100, mig: []}\n  - {model: A30, mig: [2g.12gb]}\n")
        machine.devices = f"sim:{file}"
        machine.up()
        jobs = [machine.submit("--gpus", f"1({profile})", "bash", "-c", SHOW) for profile in ("3g.40gb", "2g.12gb", "1g.6gb", "7g.80gb")]
        machine.wait(*jobs)
        assert all(machine.log(job).startswith("MIG-") for job in jobs)
        machine.kill_daemon()
        machine.up()
        profiles = [one["mig"]["profile"] for one in machine.get("/api/v1/machine")["nodes"][0]["devices"]]
        assert sorted(profiles) == ["1g.6gb", "2g.12gb", "7g.80gb"]
    finally:
        machine.close()
