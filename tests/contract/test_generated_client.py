# SPDX-License-Identifier: Apache-2.0
"""A client that openapi-python-client makes of the description submits a job, waits for it and reads its log."""

import json
import os
import subprocess

from http_client import ask
from machine import PATIENCE
from pypi import program

# With what was generated and nothing else: no path, no field name is written here that is not the client's own.
WORK = '''
import sys

import httpx
from made.api.gpu import show_gpu_status
from made.api.jobs import explain_job, show_job, show_job_log, submit_jobs, wait_for_change
from made.client import Client
from made.models import Job, JobSpec, Payload, Problem, Request, Submit, SubmitAnswer
from made.models import SubmitRequestItemType0 as Item

client = Client(base_url="http://gflow", httpx_args={"transport": httpx.HTTPTransport(uds=sys.argv[1])})
job = Item(
    spec=JobSpec(name="made", work_dir="/", command="echo hello", request=Request(gpus=1)),
    payload=Payload(argv=["echo", "hello"], environment=["PATH=/usr/bin:/bin"]),
)
answer = submit_jobs.sync(client=client, body=Submit(items=[job]))
assert isinstance(answer, SubmitAnswer), answer
revision = 0
while True:
    shown = show_job.sync(answer.items[0].id, client=client)
    assert isinstance(shown, Job), shown
    if shown.ended is not None:
        break
    revision = wait_for_change.sync(client=client, revision=revision).revision
assert (shown.status.value, shown.spec.name, shown.outcome.exit_code) == ("Finished", "made", 0), shown
free = show_gpu_status.sync(client=client)
assert free.available_nodes[0].gpu_type == "RTX3090", free
log = show_job_log.sync(shown.id, client=client)
assert log == "hello\\n", log
missing = show_job.sync(99, client=client)
assert isinstance(missing, Problem) and missing.code == "not_found", missing
job.spec.hold = True
held = submit_jobs.sync(client=client, body=Submit(items=[job])).items[0].id
told = explain_job.sync(held, client=client)
assert [one.command for one in told.suggestions] == [f"gjob release {held}"], told
print("finished", shown.id)
'''


def test_it_works(machine, tmp_path):
    generator = program("openapi-python-client")
    description = tmp_path / "openapi.json"
    description.write_text(json.dumps(ask(machine, "GET", "/api/v1/openapi.json").document))
    made = subprocess.run(
        [generator, "generate", "--path", description, "--output-path", tmp_path / "made", "--meta", "none",
         "--fail-on-warning"],
        capture_output=True, text=True, timeout=PATIENCE, check=False, cwd=tmp_path,
        env=os.environ | {"PATH": f"{generator.parent}:{os.environ['PATH']}"})
    assert made.returncode == 0, made.stdout + made.stderr
    ran = subprocess.run(
        [program("python"), "-c", WORK, machine.socket],
        capture_output=True, text=True, timeout=PATIENCE, check=False, cwd=tmp_path)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert ran.stdout == "finished 1\n"
