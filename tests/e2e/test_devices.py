# SPDX-License-Identifier: Apache-2.0
"""Devices: GPUs others use are not given out, on simulated machines and through the driver's library."""

import json
import subprocess

import pytest
from machine import BIN, Gate, Machine
from terminal import on_terminal

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


def of_gpus(machine):
    """UUID by index of the GPUs as ginfo has them, and what is wrong with each."""
    node = json.loads(machine.ok("ginfo", "--json"))["nodes"][0]
    return {gpu["index"]: (gpu["uuid"], gpu["trouble"]) for gpu in node["devices"]}


def until_gpus(machine, wanted):
    """Returns once `wanted(of_gpus())`, asked again whenever anything changed."""
    while True:
        revision = machine.get("/api/v1/jobs?limit=1")["revision"]
        if wanted(of_gpus(machine)):
            return
        machine.get(f"/api/v1/changes?revision={revision}")


@pytest.mark.parametrize("restart", [False, True], ids=["running", "restarted"])
def test_what_is_held_is_the_device_and_not_its_index(bare, restart):
    """Indices of the machine shift when a GPU goes: the job's GPU is not given to a second one."""
    file = bare.work / "lab.yaml"
    gpu = "  - {{model: RTX3090, uuid: GPU-{0}, pci_address: '0000:0{1}:00.0'}}\n".format
    a, b = gpu("a", 1), gpu("b", 2)
    file.write_text("gpus:\n" + a + b)
    bare.devices = f"sim:{file}"
    bare.up()
    gates = [Gate(bare, f"gate{n}") for n in range(3)]
    show = "echo $GFLOW_GPU_INDICES $GFLOW_GPU_UUIDS $CUDA_VISIBLE_DEVICES"
    on_a, on_b = (bare.submit("--gpus", "1", "bash", "-c", f"{show}; {gate.command}") for gate in gates[:2])
    for gate in gates[:2]:
        gate.reached()
    gates[0].open()
    bare.wait(on_a)
    if restart:
        bare.down()
    file.write_text("gpus:\n" + b)
    if restart:
        bare.up()
    until_gpus(bare, lambda gpus: len(gpus) == 1)
    second = bare.submit("--gpus", "1", "bash", "-c", f"{show}; {gates[2].command}")
    assert of_gpus(bare) == {1: ("GPU-b", "")}
    assert bare.job(second)["status"] == "Queued"
    assert f"job {on_b}" in bare.ok("gjob", "why", second)
    # Gone altogether, it stays held, and is shown as gone.
    file.write_text("gpus:\n" + a)
    gates[2].reached()
    assert bare.log(second) == "0 GPU-a GPU-a\n"
    assert "not in the machine any more" in of_gpus(bare)[1][1]
    gates[1].open()
    gates[2].open()
    bare.wait(on_b, second)
    until_gpus(bare, lambda gpus: 1 not in gpus)
    assert bare.log(on_b) == "1 GPU-b 1\n"


def drained(machine):
    """UUIDs of the GPUs that ginfo has as drained."""
    node = json.loads(machine.ok("ginfo", "--json"))["nodes"][0]
    return {gpu["uuid"] for gpu in node["devices"] if gpu["drained"]}


def test_what_is_drained_is_the_device_and_not_its_index(bare):
    """The machine is opened while the daemon is down: its GPUs come back in another order."""
    file = bare.work / "lab.yaml"
    gpu = "  - {{model: RTX3090, uuid: GPU-{0}, pci_address: '0000:0{1}:00.0'}}\n".format
    file.write_text("gpus:\n" + gpu("a", 1) + gpu("b", 2) + gpu("c", 3))
    bare.devices = f"sim:{file}"
    bare.up()
    bare.ok("gctl", "drain", "gpu", "1", "--reason", "fan")
    assert drained(bare) == {"GPU-b"}
    bare.down()
    file.write_text("gpus:\n" + gpu("b", 1) + gpu("c", 2) + gpu("a", 3))
    bare.up()
    assert drained(bare) == {"GPU-b"}
    assert "GPU 0 " in bare.ok("gctl", "show")
    node = bare.get("/api/v1/drain")["drains"][0]["node"]
    job = bare.submit("--gpus", "1", "bash", "-c", "echo $GFLOW_GPU_UUIDS")
    bare.wait(job)
    assert bare.log(job) == "GPU-c\n"
    # Without it nothing is drained; when it is back it is, wherever it is plugged in.
    bare.down()
    file.write_text("gpus:\n" + gpu("a", 1) + gpu("c", 2))
    bare.up()
    assert drained(bare) == set()
    assert bare.ok("gctl", "show").splitlines()[1].split()[:7] == "was GPU 0 of node".split() + [node, "(not"]
    away = bare.get("/api/v1/drain")["drains"]
    assert [(drain["uuid"], drain["present"], drain["gpu"]) for drain in away] == [("GPU-b", False, 0)]
    assert json.loads(bare.ok("ginfo", "--json"))["nodes"][0]["drained_absent"][0]["uuid"] == "GPU-b"
    for words in ([], ["-1"], ["-l"]):
        assert "Drained and not present: GPU-b (was GPU 0): fan\n" in bare.ok("ginfo", *words)
    terminal, _ = on_terminal(bare, "ginfo", columns=80, rows=40, env={"LC_ALL": "zh_CN.UTF-8"})
    assert "已停用且当前不在：GPU-b（曾为 GPU 0）：fan" in terminal.screen.text()
    # Its index is another's now, which was never drained; it has a name of its own.
    refused = bare.run("gctl", "resume", "gpu", "0")
    assert refused.code == 6 and "name it by its UUID, GPU-b" in refused.err
    assert bare.ok("gctl", "__complete", "resume", "gpu", "").splitlines()[1:] == ["GPU-b\tfan"]
    assert bare.ok("gctl", "__complete", "drain", "gpu", "") == ":words\n0\tGPU-a\n1\tGPU-c\n"
    assert bare.ok("gctl", "drain", "gpu", "GPU-b,GPU-c", "-r", "loud") == "GPU-b is drained\nGPU-c is drained\n"
    assert drained(bare) == {"GPU-c"} and bare.ok("gctl", "show").count("loud") == 2
    assert bare.ok("gctl", "resume", "gpu", f"{node}:GPU-c") == f"GPU-c of node {node} is back in service\n"
    file.write_text("gpus:\n" + gpu("a", 1) + gpu("c", 2) + gpu("b", 3))
    until_gpus(bare, lambda gpus: len(gpus) == 3)
    assert "present" not in bare.ok("gctl", "show") and "GPU-b" in bare.ok("gctl", "show")
    assert "present" not in bare.ok("ginfo")
    assert drained(bare) == {"GPU-b"}
    bare.ok("gctl", "resume", "gpu", "2")
    assert drained(bare) == set()
    # One that will not come back is given up by its UUID.
    bare.ok("gctl", "drain", "gpu", "2", "-r", "sold")
    file.write_text("gpus:\n" + gpu("a", 1) + gpu("c", 2))
    until_gpus(bare, lambda gpus: len(gpus) == 2)
    assert bare.run("gctl", "resume", "gpu", "2").code == 3
    assert bare.run("gctl", "resume", "gpu", "GPU-d").code == 3
    assert bare.ok("gctl", "resume", "gpu", "GPU-b") == "GPU-b is back in service\n"
    assert bare.ok("gctl", "show") == "nothing is drained\n"


def test_a_job_on_a_gpu_it_does_not_hold_is_stopped_where_that_is_the_policy(bare):
    """Also by a daemon that is told of the policy after it has warned of the job."""
    file = bare.work / "lab.yaml"
    gpu = "  - {{model: H100, uuid: GPU-{0}, processes: [{1}]}}\n".format
    file.write_text("gpus:\n" + gpu("a", "") + gpu("b", ""))
    bare.devices = f"sim:{file}"
    bare.up()
    gate = Gate(bare)
    stray = bare.submit("--gpus", "1", "--name", "stray", "--max-retries", "3", "bash", "-c", gate.command)
    gate.reached()
    pid = bare.running(stray)["pid"]

    def on_other(memory):
        file.write_text("gpus:\n" + gpu("a", "") + gpu("b", f"{{pid: {pid}, memory: {memory}}}"))

    log = bare.logs / "gpu_resource_manager.log"
    said = ", stray) uses GPU 1 (2G of its memory), which it does not hold"
    on_other("1G")
    while True:
        revision = bare.get("/api/v1/jobs?limit=1")["revision"]
        if "which it does not hold" in log.read_text():
            break
        bare.get(f"/api/v1/changes?revision={revision}")
    assert bare.job(stray)["status"] == "Running"
    bare.config("[sharing]\nstop_overuse = true\n")
    bare.ok("gctl", "config", "reload")
    on_other("2G")
    assert bare.wait(stray)[0]["status"] == "Cancelled"
    assert "cancelled: it used a GPU that it does not hold" in bare.ok("gjob", "show", stray)
    assert said in log.read_text() and log.read_text().count("it is stopped (stop_overuse)") == 1


def test_a_job_on_a_gpu_it_does_not_hold_keeps_that_from_others(bare):
    """A program that counts GPUs by itself, and a grandchild of it that has left its session."""
    file = bare.work / "lab.yaml"
    gpu = "  - {{model: H100, uuid: GPU-{0}, processes: [{1}]}}\n".format
    file.write_text("gpus:\n" + gpu("a", "") + gpu("b", "") + gpu("c", ""))
    bare.devices = f"sim:{file}"
    bare.up()
    gate, other = Gate(bare), Gate(bare, "other")
    daemonise = f"(setsid sleep 1000 & echo $! >{bare.work}/daemonised)"
    stray = bare.submit("--gpus", "8G,0.5", "--name", "stray", "bash", "-c", f"{daemonise}; {gate.command}")
    gate.reached()
    pid, grandchild = bare.running(stray)["pid"], (bare.work / "daemonised").read_text().strip()
    on = "{{pid: {0}, memory: {1}}}".format
    # 7G where it holds 8G are its own; 70G elsewhere are not, nor is what its grandchild has.
    busy = "gpus:\n" + gpu("a", on(pid, "7G")) + gpu("b", on(pid, "70G")) + gpu("c", on(grandchild, "1G"))
    file.write_text(busy)

    def bars():
        node = json.loads(bare.ok("ginfo", "--json"))["nodes"][0]
        return [gpu["unavailable_because"] for gpu in node["devices"]]

    def until_bars(wanted):
        while True:
            revision = bare.get("/api/v1/jobs?limit=1")["revision"]
            if bars() == wanted:
                return
            bare.get(f"/api/v1/changes?revision={revision}")

    until_bars(["none", "in_use", "in_use"])
    text = bare.ok("ginfo", "-l")
    assert text.count(f"In use by job {stray}, which does not hold it") == 2
    second = bare.submit("--gpus", "1", "bash", "-c", f"echo $GFLOW_GPU_UUIDS; {other.command}")
    why = f"GPU 1 in use by job {stray}, which does not hold it"
    assert why in bare.ok("gqueue", "-j", second) + bare.ok("gjob", "why", second)
    beside = bare.submit("--gpus", "8G,0.5", "bash", "-c", "echo $GFLOW_GPU_UUIDS")
    bare.wait(beside)
    assert bare.log(beside) == "GPU-a\n"
    log = bare.logs / "gpu_resource_manager.log"
    said = ", stray) uses GPU 1 (70G of its memory), which it does not hold"
    assert log.read_text().count("which it does not hold") == 1 and said in log.read_text()
    bare.kill_daemon()
    bare.up()
    assert bars() == ["none", "in_use", "in_use"]
    assert bare.job(second)["status"] == "Queued"
    assert log.read_text().count("which it does not hold") == 1
    # It leaves one of them.
    file.write_text(busy.replace(on(pid, "70G"), ""))
    other.reached()
    assert bare.log(second) == "GPU-b\n"
    # It ends, and all of it is gone whatever the last reading said; what a later one shows is nobody's.
    gate.open()
    bare.wait(stray)
    assert bars() == ["none", "none", "none"]
    file.write_text(busy.replace(on(pid, "70G"), "").replace(on(pid, "7G"), on(pid, "6G")))
    until_bars(["in_use", "none", "in_use"])
    assert "In use outside gflow" in bare.ok("ginfo", "-l")
    other.open()
    bare.wait(second)


def test_a_gpu_is_visible_by_its_place_in_the_machine(bare):
    """An index that was kept is not where the driver counts the GPU; beside a broken one no count is sure."""
    file = bare.work / "lab.yaml"
    gpu = "  - {{model: RTX3090, uuid: GPU-{0}, pci_address: '0000:0{1}:00.0'{2}}}\n".format
    file.write_text("gpus:\n" + gpu("a", 1, "") + gpu("b", 2, ""))
    bare.devices = f"sim:{file}"
    bare.up()
    gate = Gate(bare)
    show = "echo $GFLOW_GPU_INDICES $CUDA_VISIBLE_DEVICES"
    holder = bare.submit("--gpus", "2", "bash", "-c", gate.command)
    gate.reached()
    file.write_text("gpus:\n" + gpu("b", 2, "") + gpu("c", 3, ""))
    until_gpus(bare, lambda gpus: len(gpus) == 3)
    gate.open()
    bare.wait(holder)
    both = bare.submit("--gpus", "2", "bash", "-c", show)
    bare.wait(both)
    assert bare.log(both) == "1,2 0,1\n"
    file.write_text("gpus:\n" + gpu("b", 2, ", state: lost") + gpu("c", 3, ""))
    until_gpus(bare, lambda gpus: gpus[1][1] != "")
    one = bare.submit("--gpus", "1", "bash", "-c", show)
    bare.wait(one)
    assert bare.log(one) == "2 GPU-c\n"


def test_the_interval_of_the_guide_is_taken_up_by_a_reload(nvidia):
    """It used to be taken up only once the old one had passed."""

    def uses(gigabytes):
        nvidia.file.write_text(f"gpus:\n  - {{model: H100, uuid: GPU-a, memory_total: 80G, memory_used: {gigabytes}G}}\n")

    uses(1)
    gpus = nvidia.home / ".config/gflow/gpu_config.yaml"
    gpus.parent.mkdir(parents=True)
    gpus.write_text("monitor_update_interval: 86400\n")
    nvidia.up()
    gpus.write_text("monitor_update_interval: 1\n")
    nvidia.ok("gctl", "config", "reload")
    for wanted in (2, 3, 4):  # the reload reads once, too
        uses(wanted)
        while True:
            revision = nvidia.get("/api/v1/jobs?limit=1")["revision"]
            if nvidia.get("/api/v1/machine")["nodes"][0]["devices"][0]["memory_used_bytes"] == wanted << 30:
                break
            nvidia.get(f"/api/v1/changes?revision={revision}")
