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
            seen = self.machine.get("/api/v1/machine")
            if seen["nodes"][0]["devices"][0]["memory_used_bytes"] >= least:
                return
            revision = self.machine.get("/api/v1/jobs?limit=1")["revision"]
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
