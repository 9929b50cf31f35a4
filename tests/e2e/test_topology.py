# SPDX-License-Identifier: Apache-2.0
"""How the GPUs are connected: from the machine file or the driver through the daemon to `ginfo --topo`."""

import json

import pytest
from machine import BIN, Machine

FAKE_NVML = BIN.parent / "fake_nvml"

MATRIX = """\
GPU   GPU0  GPU1  GPU2  GPU3  CPU Affinity  NUMA Affinity
GPU0  X     NV4   PHB   SYS   0-15          0
GPU1  NV4   X     PHB   SYS   0-15          0
GPU2  PHB   PHB   X     SYS   0-15          0
GPU3  SYS   SYS   SYS   X     16-31         1
"""


def machine_file(gpus, matrix):
    return f"gpus: [{gpus}]\ntopology: |\n" + "".join(f"  {line}\n" for line in matrix.splitlines())


def test_what_is_printed_can_be_a_machine_file(bare):
    file = bare.work / "lab.yaml"
    file.write_text(machine_file("{model: RTX3090, count: 4}", MATRIX))
    bare.devices = f"sim:{file}"
    bare.up()
    printed = bare.ok("ginfo", "--topo")
    assert printed.startswith(MATRIX + "\n")
    assert "NV#   that many NVLinks, 12 GB/s each" in printed and "  SYS " in printed
    file.write_text(machine_file("{model: RTX3090, count: 4}", printed))
    bare.ok("gflowd", "reload")
    assert bare.ok("ginfo", "--topo") == printed


def test_a_machine_file_is_found_from_here(bare):
    (bare.work / "lab.yaml").write_text(machine_file("{model: RTX3090, count: 4}", MATRIX))
    (bare.work / "mine.toml").write_text("[sharing]\nallow_see_all = true\n")
    bare.ok("gflowd", "up", "--devices", "sim:lab.yaml", "--gflow-config", "mine.toml")
    assert bare.ok("ginfo", "--topo").startswith(MATRIX + "\n")
    seen = bare.submit("--gpus=-1(RTX3090)", "bash", "-c", "echo $CUDA_VISIBLE_DEVICES")
    assert bare.wait(seen)[0]["status"] == "Finished"
    assert "requests every GPU of a machine with V100 GPUs" in bare.run("gbatch", "--gpus=-1(V100)", "true").err


def test_topology_as_json(bare):
    bare.devices = "sim:8xH100"
    bare.up()
    topology = json.loads(bare.ok("ginfo", "--topo", "--json"))["nodes"][0]["topology"]
    assert topology["switch_links"] == [18] * 8
    assert topology["numa_nodes"] == [0] * 4 + [1] * 4
    assert topology["paths"][0][:2] == ["X", "NODE"] and topology["link_mb_per_second"] == 20600


def test_a_job_tells_why_it_got_these(bare):
    file = bare.work / "lab.yaml"
    file.write_text(machine_file("{model: RTX3090, count: 4}", MATRIX))
    bare.devices = f"sim:{file}"
    bare.up()
    pair = bare.running(bare.submit("--gpus", "2", "--cpus", "2", "sleep", "1000"))
    assert "GB/s, the best of this machine" in pair["placed_because"]
    assert pair["gpu_indices"] == [0, 1] and pair["cpu_indices"] == [0, 1]
    shown = bare.ok("gjob", "show", pair["id"])
    assert "  Allocated     GPU 0,1 and CPU 0-1\n" in shown
    assert f"Chosen for    {pair['placed_because']}\n" in shown
    bare.down()
    bare.up()
    assert bare.job(pair["id"])["placed_because"] == pair["placed_because"]
    one = bare.running(bare.submit("--gpus", "1", "sleep", "1000"))
    assert one["placed_because"] is None and one["cpu_indices"] == []
    assert "Chosen for" not in bare.ok("gjob", "show", one["id"])
    bare.ok("gcancel", pair["id"], one["id"])


def test_a_wrong_matrix_is_said(bare):
    file = bare.work / "lab.yaml"
    file.write_text(machine_file("{model: RTX3090, count: 2}", MATRIX))
    ran = bare.run("gflowd", "up", "--devices", f"sim:{file}")
    assert ran.code == 2 and "lab.yaml:2: topology: the matrix has 4 GPUs, the machine 2" in ran.err


def test_no_gpus(bare):
    bare.devices = "none"
    bare.up()
    assert bare.ok("ginfo", "--topo").startswith("No GPUs")


def test_through_the_driver():
    if not (FAKE_NVML / "libnvidia-ml.so.1").exists():
        pytest.skip("the simulated driver library is not built")
    machine = Machine("nvml")
    file = machine.work / "driver.yaml"
    file.write_text("gpus: [{model: V100, count: 8}]\n")
    machine.environment |= {"LD_LIBRARY_PATH": str(FAKE_NVML), "GFLOW_FAKE_NVML": str(file)}
    try:
        machine.up()
        rows = machine.ok("ginfo", "--topo").splitlines()
        assert rows[1].split()[:9] == ["GPU0", "X", "NV1", "NV1", "NV2", "NV2", "SYS", "SYS", "SYS"]
    finally:
        machine.close()
