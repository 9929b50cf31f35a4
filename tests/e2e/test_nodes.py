# SPDX-License-Identifier: Apache-2.0
"""The node of the daemon has a name, and stays the same node when that changes."""

import subprocess

from machine import Gate


def test_the_node_is_named_by_setting_file_or_host(bare):
    host = subprocess.run(["hostname"], capture_output=True, text=True, check=True).stdout.strip().split(".")[0]
    file = bare.work / "lab.yaml"
    file.write_text("name: filed\ngpus:\n  - {model: RTX3090}\n")
    for devices, setting, name in (("sim:1xH100", "", host), (f"sim:{file}", "", "filed"), (f"sim:{file}", "set1", "set1")):
        bare.devices = devices
        bare.config(f'[node]\nname = "{setting}"\n')
        bare.up()
        job = bare.submit("--gpus", "1", "bash", "-c", "echo $GFLOW_NODE $GFLOW_NODELIST")
        bare.wait(job)
        assert bare.log(job) == f"{name} {name}\n"
        assert bare.job(job)["node"] == name and bare.get("/api/v1/machine")["nodes"][0]["name"] == name
        assert f"Node          {name}\n" in bare.ok("gjob", "show", job)
        bare.down()
    bare.config('[node]\nname = "a:b"\n')
    assert "is not a node name" in bare.run("gflowd", "up").err


def test_what_a_node_holds_is_its_own_under_a_new_name(bare):
    bare.devices = "sim:2xH100"
    bare.config('[node]\nname = "old"\n')
    bare.up()
    gate = Gate(bare)
    job = bare.submit("--gpus", "1", "bash", "-c", gate.command)
    gate.reached()
    bare.until(job, lambda seen: seen["status"] == "Running")
    bare.ok("gctl", "drain", "gpu", "1", "-r", "fan")
    bare.down()
    bare.config('[node]\nname = "new"\n')
    bare.up()
    seen = bare.job(job)
    assert (seen["status"], seen["node"], seen["gpu_indices"], seen["node_list"]) == ("Running", "new", [0], "0")
    assert "node new" in bare.ok("gctl", "show") and bare.ok("gctl", "drain", "gpu", "new:1") == "GPU 1 of node new is drained\n"
    assert "there is no node old" in bare.run("gctl", "drain", "node", "old").err
    waits = bare.submit("--gpus", "1", "true")
    assert bare.job(waits)["status"] == "Queued"
    gate.open()
    bare.wait(job, waits)
