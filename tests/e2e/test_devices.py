# SPDX-License-Identifier: Apache-2.0
"""Devices: GPUs others use are not given out, on simulated machines and through the driver's library."""

import subprocess

import pytest
from machine import BIN, Gate, Machine

FAKE_NVML = BIN.parent / "fake_nvml"


def test_foreign_process_on_a_simulated_machine(bare):
    file = bare.work / "lab.yaml"
    busy = "gpus:\n  - {model: RTX3090, processes: [{pid: 4711, user: dave, name: python, memory: 22G}]}\n  - model: RTX3090\n"
    file.write_text(busy)
    bare.devices = f"sim:{file}"
    bare.up()
    text = bare.ok("ginfo")
    assert "Available GPUs: 1" in text and "4711" in text and "dave" in text
    first = bare.submit("--gpus", "1", "bash", "-c", "echo $CUDA_VISIBLE_DEVICES")
    bare.wait(first)
    assert bare.log(first) == "1\n"
    both = bare.submit("--gpus", "2", "true")
    assert "GPU 0 used outside gflow" in bare.ok("gqueue", "-j", both)
    file.write_text(busy.replace("processes: [{pid: 4711, user: dave, name: python, memory: 22G}]", "count: 1"))
    assert bare.wait(both)[0]["status"] == "Finished"


@pytest.fixture
def nvidia():
    """A machine whose NVIDIA driver library is ours: the real probe loads it."""
    if not (FAKE_NVML / "libnvidia-ml.so.1").exists():
        pytest.skip("the simulated driver library is not built")
    made = Machine("nvml")
    made.file = made.work / "driver.yaml"
    made.environment |= {"LD_LIBRARY_PATH": str(FAKE_NVML), "GFLOW_FAKE_NVML": str(made.file)}
    try:
        yield made
    finally:
        made.close()


def test_nvml_end_to_end(nvidia):
    nvidia.file.write_text("gpus:\n  - {model: A100, count: 2}\n")
    nvidia.up()
    text = nvidia.ok("ginfo")
    assert "Total GPUs: 2" in text and "GPU 0: NVIDIA A100" in text and "  UUID: GPU-" in text
    gate = Gate(nvidia)
    job = nvidia.submit("--gpus", "2", "bash", "-c", gate.command)
    gate.reached()
    assert f"In use by job {job}" in nvidia.ok("ginfo")
    gate.open()
    assert nvidia.wait(job)[0]["status"] == "Finished"


def test_nvml_process_that_is_not_gflows(nvidia):
    """A real process on a GPU keeps it; when it is gone the next reading gives the GPU out."""
    with subprocess.Popen(["sleep", "1000"]) as stranger:
        nvidia.file.write_text(f"gpus:\n  - {{model: A100, processes: [{{pid: {stranger.pid}, memory: 10G}}]}}\n")
        nvidia.up()
        assert "Available GPUs: 0" in nvidia.ok("ginfo")
        job = nvidia.submit("--gpus", "1", "true")
        assert nvidia.job(job)["status"] == "Queued"
        stranger.kill()
        stranger.wait()
        assert nvidia.wait(job)[0]["status"] == "Finished"


def test_nvml_without_a_driver_says_so(bare):
    bare.devices = "nvml"
    ran = bare.run("gflowd", "up", "--devices", "nvml")
    assert ran.code != 0 and "libnvidia-ml" in ran.err


def test_hanging_driver_does_not_hang_the_daemon(nvidia):
    nvidia.file.write_text("nvml: {calls: {nvmlInit_v2: hang}}\ngpus:\n  - model: A100\n")
    nvidia.devices = "auto"
    nvidia.up()
    assert "Scheduler Status: Running" in nvidia.ok("ginfo")
    assert nvidia.wait(nvidia.submit("true"))[0]["status"] == "Finished"
