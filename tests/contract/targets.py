# SPDX-License-Identifier: Apache-2.0
"""What routes act on, and how somebody makes one of it: a job in the state that a verb wants, or an allocation."""

import json

# Of each operation that names a job or an allocation: in which state that has to be for it to do something.
KINDS = {
    ("PATCH", "/api/v1/jobs"): "held",
    ("POST", "/api/v1/jobs/cancel"): "held",
    ("POST", "/api/v1/jobs/signal"): "running",
    ("POST", "/api/v1/jobs/hold"): "waiting",
    ("POST", "/api/v1/jobs/release"): "held",
    ("POST", "/api/v1/jobs/suspend"): "running",
    ("POST", "/api/v1/jobs/resume"): "running",
    ("GET", "/api/v1/jobs/{id}"): "held",
    ("PATCH", "/api/v1/jobs/{id}"): "held",
    ("DELETE", "/api/v1/jobs/{id}"): "held",
    ("POST", "/api/v1/jobs/{id}/suspend"): "running",
    ("POST", "/api/v1/jobs/{id}/resume"): "running",
    ("POST", "/api/v1/jobs/{id}/move"): "running",
    ("GET", "/api/v1/jobs/{id}/explain"): "held",
    ("GET", "/api/v1/jobs/{id}/log"): "running",
    ("GET", "/api/v1/gpu/allocations/{id}"): "allocation",
    ("DELETE", "/api/v1/gpu/allocations/{id}"): "allocation",
    ("POST", "/api/v1/gpu/allocations/{id}/renew"): "allocation",
}
# What nobody can have done here, whoever asks: simulated GPUs have no driver that moves a job.
NEVER_DONE = {("POST", "/api/v1/jobs/{id}/move")}
STATUS = {"held": "Hold", "waiting": "Queued", "running": "Running", "allocation": "Running"}
_MORE = {"held": {"hold": True}, "waiting": {"begin": "2099-01-01T00:00:00Z"}, "running": {}}


class Maker:
    """Makes them in somebody's name. ask(method, target, body): status and text of the answer."""

    def __init__(self, ask):
        self.ask = ask

    def make(self, kind):
        """The number of one that is in that state."""
        if kind == "allocation":
            status, text = self.ask("POST", "/api/v1/gpu/allocate", {"gpu_count": 1, "ttl_seconds": 80000})
            assert status == 200 and json.loads(text)["success"], text
            return json.loads(text)["allocation_id"]
        item = {"spec": {"work_dir": "/", "command": "sleep", **_MORE[kind]},
                "payload": {"argv": ["sh", "-c", "trap : USR1; sleep infinity & wait; wait"], "environment": ["PATH=/usr/bin:/bin"]}}
        status, text = self.ask("POST", "/api/v1/jobs", {"items": [item]})
        assert status == 201, text
        job = json.loads(text)["items"][0]["id"]
        while self.status(job) != STATUS[kind]:
            pass  # each round asks gflowd, which starts it
        return job

    def status(self, job):
        status, text = self.ask("GET", f"/api/v1/jobs/{job}", None)
        return json.loads(text)["status"] if status == 200 else None
