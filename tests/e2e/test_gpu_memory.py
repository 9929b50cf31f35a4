# SPDX-License-Identifier: Apache-2.0
"""The memory guard on a simulated machine whose readings follow the jobs."""

from machine import Gate


class Lab:
    """One RTX3090 and the processes on it, as the machine file says."""

    def __init__(self, machine):
        self.machine = machine
        self.file = machine.work / "lab.yaml"
        self.show()
        machine.devices = f"sim:{self.file}"
        machine.up()

    def show(self, **memory_by_pid):
        processes = ", ".join(f"{{pid: {pid[1:]}, memory: {memory}}}" for pid, memory in memory_by_pid.items())
        self.file.write_text(f"gpus:\n  - {{model: RTX3090, processes: [{processes}]}}\n")

    def used(self, least):
        """Waits until the daemon has read that so much is used."""
        while True:
            revision = self.machine.get("/api/v1/jobs?limit=1")["revision"]
            seen = self.machine.get("/api/v1/machine")
            if seen["nodes"][0]["devices"][0]["memory_used_bytes"] >= least:
                return
            self.machine.get(f"/api/v1/changes?revision={revision}")


def test_what_jobs_use_is_theirs_and_counts(bare):
    lab = Lab(bare)
    gate, other = Gate(bare), Gate(bare, "other")
    greedy = bare.submit("--gpus", "8G,0.25", "bash", "-c", gate.command)
    gate.reached()
    pid = bare.running(greedy)["pid"]
    lab.show(**{f"p{pid}": "14G"})  # 6G more than it declared
    lab.used(14 << 30)
    # Of 24G it holds 14G: 8G fit beside it, 12G do not.
    too_much = bare.submit("--gpus", "12G,0.25", "true")
    fits = bare.submit("--gpus", "8G,0.25", "bash", "-c", other.command)
    other.reached()
    assert bare.job(too_much)["status"] == "Queued"
    assert "memory" in bare.ok("gjob", "why", too_much)
    gate.open()
    ended = bare.wait(greedy)[0]
    assert ended["status"] == "Finished"
    assert ended["outcome"]["peak_gpu_memory_bytes"] == 14 << 30
    # It is gone, and with it what it used, whatever the last reading said.
    assert bare.wait(too_much)[0]["status"] == "Finished"
    other.open()
    assert bare.wait(fits)[0]["outcome"]["peak_gpu_memory_bytes"] is None


def test_a_job_over_its_memory_is_shown_and_warned_of(bare):
    lab = Lab(bare)
    gate = Gate(bare)
    greedy = bare.submit("--gpus", "8G,0.5", "--name", "greedy", "bash", "-c", gate.command)
    gate.reached()
    pid = bare.running(greedy)["pid"]
    lab.show(**{f"p{pid}": "7G"})
    lab.used(7 << 30)
    assert "GPU memory    GPU 0: 7G of 8G\n" in bare.ok("gjob", "show", greedy)
    lab.show(**{f"p{pid}": "20G"})
    lab.used(20 << 30)
    use = {"gpu": 0, "used_bytes": 20 << 30, "reserved_bytes": 8 << 30}
    assert [use | {"node": bare.job(greedy)["node"]}] == bare.job(greedy)["gpu_memory"]
    shown = bare.ok("gjob", "show", greedy)
    assert "GPU 0: 20G of 8G, more than requested" in shown
    assert "GPU share     memory and compute capped by the interposer" in shown
    user = bare.job(greedy)["user"]["name"]
    said = f"job {greedy} ({user}, greedy) uses 20G of the memory of GPU 0; 8G is reserved for it"
    lab.show(**{f"p{pid}": "21G"})
    lab.used(21 << 30)
    log = (bare.logs / "gpu_resource_manager.log").read_text()
    assert log.count("of the memory of GPU 0") == 1 and said in log
    # Nor is it said again by a daemon that comes after.
    bare.down()
    bare.up()
    lab.show(**{f"p{pid}": "22G"})
    lab.used(22 << 30)
    bare.kill_daemon()
    bare.up()
    assert bare.job(greedy)["gpu_memory"][0]["used_bytes"] == 22 << 30
    assert (bare.logs / "gpu_resource_manager.log").read_text().count("of the memory of GPU 0") == 1
    gate.open()
    ended = bare.wait(greedy)[0]
    assert ended["gpu_memory"] == []
    assert "22G of GPU memory at peak" in bare.ok("gjob", "show", greedy)


def test_a_job_far_over_its_memory_is_stopped_where_that_is_the_policy(bare):
    bare.config('[sharing]\nstop_overuse = true\noveruse_margin = "3G"\n')
    lab, gate = Lab(bare), Gate(bare)
    greedy = bare.submit("--gpus", "8G,0.5", "--name", "greedy", "bash", "-c", gate.command)
    gate.reached()
    pid = bare.running(greedy)["pid"]
    lab.show(**{f"p{pid}": "11G"})
    lab.used(11 << 30)
    assert bare.job(greedy)["status"] == "Running"
    lab.show(**{f"p{pid}": "12G"})
    ended = bare.wait(greedy)[0]
    assert ended["status"] == "Cancelled"
    assert "cancelled: it used more GPU memory than is reserved for it" in bare.ok("gjob", "show", greedy)
    log = (bare.logs / "gpu_resource_manager.log").read_text()
    assert log.count("it is stopped (stop_overuse)") == 1
    assert "uses 12G of the memory of GPU 0; 8G is reserved for it; it is stopped (stop_overuse)" in log


def test_what_is_not_enforced_is_said(bare):
    assert "memory and compute capped by the interposer on NVIDIA GPUs" in bare.ok("gflow", "spec", "8G,0.5")
    assert "enforced" not in bare.ok("gflow", "spec", "2")
    bare.up()
    doctor = bare.run("gflow", "doctor").out
    assert "GPU compute shares" in doctor and "GPU memory limits" in doctor


def test_two_halves_of_a_gpu_that_is_not_quite_empty(bare):
    """An idle device has some of its memory in use: shares are of the rest."""
    bare.devices = "sim:1xRTX3090"
    bare.up()
    device = bare.get("/api/v1/machine")["nodes"][0]["devices"][0]
    assert device["memory_used_bytes"] > 0, "the model uses nothing when it is idle"
    gates = [Gate(bare, name) for name in "ab"]
    jobs = [bare.submit("--gpus", "0.5", "bash", "-c", gate.command) for gate in gates]
    for gate in gates:
        gate.reached()
    assert bare.get("/api/v1/machine")["nodes"][0]["devices"][0]["memory_free_bytes"] < 1 << 20
    for gate in gates:
        gate.open()
    assert [job["status"] for job in bare.wait(*jobs)] == ["Finished", "Finished"]
