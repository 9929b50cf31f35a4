# SPDX-License-Identifier: Apache-2.0
"""Slices of MIG: gflowd with the real probe on a driver library that has them, as they are cut while it runs."""

import json

import pytest
from machine import BIN, Gate, Machine

FAKE_NVML = BIN.parent / "fake_nvml"
SHOW = "echo $GFLOW_GPU_INDICES $CUDA_VISIBLE_DEVICES"


@pytest.fixture
def nvidia():
    """A machine whose NVIDIA driver library is ours: the real probe loads it."""
    made = Machine("nvml")
    made.file = made.work / "driver.yaml"
    made.environment |= {"LD_LIBRARY_PATH": str(FAKE_NVML), "GFLOW_FAKE_NVML": str(made.file)}
    try:
        yield made
    finally:
        made.close()


def write(machine, *gpus):
    machine.file.write_text("gpus:\n" + "".join(f"  - {{model: H100, {gpu}}}\n" for gpu in gpus))


def devices(machine):
    return json.loads(machine.ok("ginfo", "--json"))["nodes"][0]["devices"]


def until(machine, wanted):
    """Returns the devices once `wanted(UUID by index)`; the driver is read at a reload, too."""
    machine.ok("gctl", "config", "reload")
    while True:
        revision = machine.get("/api/v1/jobs?limit=1")["revision"]
        now = devices(machine)
        if wanted({one["index"]: one["uuid"] for one in now}):
            return now
        machine.get(f"/api/v1/changes?revision={revision}")


def logged(machine, *words):
    job = machine.submit(*words, "bash", "-c", SHOW)
    machine.wait(job)
    return machine.log(job)


CUT = "uuid: GPU-a, mig: [{profile: 3g.40gb, uuid: MIG-3}, {profile: 1g.10gb, uuid: MIG-1}, {profile: 1g.10gb, uuid: MIG-2}]"


def test_each_slice_is_a_device(nvidia):
    write(nvidia, CUT, "uuid: GPU-b, utilization_percent: 7")
    nvidia.up()
    first, second, third, whole = devices(nvidia)
    assert first["mig"] == {"parent": "GPU-a", "profile": "3g.40gb", "gpu_instance": 1, "compute_instance": 0}
    assert [one["mig"]["profile"] for one in (second, third)] == ["1g.10gb", "1g.10gb"]
    assert first["model"] == "NVIDIA H100 80GB HBM3 MIG 3g.40gb" and first["model_short"] == "H100-3g.40gb"
    assert first["memory_total_bytes"] == 40448 << 20
    assert first["utilization_percent"] is None and first["power_milliwatts"] is None and first["trouble"] == ""
    assert whole["mig"] is None and whole["utilization_percent"] == 7
    text = nvidia.ok("ginfo", "-l")
    assert "Total GPUs: 4" in text and "Cut from: GPU-a (GPU instance 1, compute instance 0)" in text
    # Whole GPUs are named by UUID, too: a driver counts slices otherwise.
    assert logged(nvidia, "--gpus", "1") == "3 GPU-b\n"
    assert logged(nvidia, "--gpus", "1(h100)") == "3 GPU-b\n"
    assert logged(nvidia, "--gpus", "1(3g.40gb)") == "0 MIG-3\n"
    assert logged(nvidia, "--gpus", "2(H100-1G.10GB)") == "1,2 MIG-1,MIG-2\n"
    assert logged(nvidia, "--gpus", "0.5") == "3 GPU-b\n"


def test_no_slice_is_given_to_two_jobs(nvidia):
    write(nvidia, CUT)
    nvidia.up()
    gates = [Gate(nvidia, f"gate{n}") for n in range(2)]
    held = [nvidia.submit("--gpus", "1(1g.10gb)", "bash", "-c", f"{SHOW}; {gate.command}") for gate in gates]
    for gate in gates:
        gate.reached()
    assert {nvidia.log(job) for job in held} == {"1 MIG-1\n", "2 MIG-2\n"}
    third = nvidia.submit("--gpus", "1(1g.10gb)", "bash", "-c", SHOW)
    assert nvidia.job(third)["status"] == "Queued"
    for words in (["1"], ["1(H100)"], ["0.5"]):
        refused = nvidia.run("gbatch", "--gpus", *words, "true")
        assert refused.code != 0
        assert "there are only MIG devices here (H100-1g.10gb, H100-3g.40gb)" in refused.err
    refused = nvidia.run("gbatch", "--gpus", "0.5(3g.40gb)", "true")
    assert refused.code != 0 and "write 1(3g.40gb)" in refused.err
    for gate in gates:
        gate.open()
    nvidia.wait(*held, third)
    # What is left has its index, and no GPU is where nothing is any more.
    write(nvidia, "uuid: GPU-a, mig: [{profile: 1g.10gb, uuid: MIG-1}]")
    until(nvidia, lambda gpus: gpus == {1: "MIG-1"})
    refused = nvidia.run("gbatch", "--gpus", "1", "true")
    assert refused.code != 0 and "there are only MIG devices here (H100-1g.10gb)" in refused.err


def test_slices_are_followed_while_they_are_cut(nvidia):
    write(nvidia, "uuid: GPU-a", "uuid: GPU-b")
    nvidia.up()
    write(nvidia, "uuid: GPU-a, mig: []", "uuid: GPU-b")
    until(nvidia, lambda _: not devices(nvidia)[0]["usable"])
    assert "nvidia-smi mig -cgi" in devices(nvidia)[0]["trouble"]
    write(nvidia, CUT, "uuid: GPU-b")
    found = until(nvidia, lambda gpus: "MIG-3" in gpus.values())
    where = {one["uuid"]: one["index"] for one in found}
    assert where["GPU-b"] == 1 and set(where) == {"GPU-b", "MIG-1", "MIG-2", "MIG-3"}
    gate = Gate(nvidia)
    job = nvidia.submit("--gpus", "1(3g.40gb)", "bash", "-c", gate.command)
    gate.reached()
    # The instances are destroyed under the job and their numbers used again: what it holds is the slice that was.
    write(nvidia, "uuid: GPU-a, mig: [{profile: 3g.40gb, uuid: MIG-new}]", "uuid: GPU-b")
    found = until(nvidia, lambda gpus: "MIG-new" in gpus.values())
    gone = next(one for one in found if one["uuid"] == "MIG-3")
    assert gone["index"] == where["MIG-3"] and not gone["usable"] and "this MIG device is not there any more" in gone["trouble"]
    assert {one["uuid"] for one in found} == {"GPU-b", "MIG-3", "MIG-new"}
    assert logged(nvidia, "--gpus", "1(3g.40gb)").endswith(" MIG-new\n")
    nvidia.kill_daemon()
    nvidia.up()
    assert {one["uuid"]: one["index"] for one in devices(nvidia)}["MIG-3"] == where["MIG-3"]
    gate.open()
    nvidia.wait(job)
    until(nvidia, lambda gpus: "MIG-3" not in gpus.values())
    write(nvidia, "uuid: GPU-a", "uuid: GPU-b")
    found = until(nvidia, lambda gpus: "GPU-a" in gpus.values())
    assert [one["mig"] for one in found] == [None, None]
    assert logged(nvidia, "--gpus", "2").split()[1] == "0,1"
