# SPDX-License-Identifier: Apache-2.0
"""A job that prepares, three that train after it, and what became of them, as it becomes so."""

import gflow

prepare = gflow.Submission("echo prepared > data.txt", name="prepare")
trainings = [
    gflow.Submission(["sh", "-c", f"cat data.txt; echo lr {lr}"], gpus=1, name=f"lr{lr}", depends_on=[prepare])
    for lr in (0.1, 0.01, 0.001)
]
client = gflow.default_client()
first, *jobs = client.submit_all([prepare, *trainings])
for job in jobs:
    ended = job.result()
    print(ended["spec"]["name"], ended["status"], job.log().split())
