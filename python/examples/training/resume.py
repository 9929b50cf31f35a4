# SPDX-License-Identifier: Apache-2.0
"""A training that may be preempted: `gbatch --gpus 1 --preemptible python resume.py`.

It saves when gflow tells it to end and when it gets SIGUSR1 (`gcancel --signal USR1 JOB`), and goes on where it was."""

import sys
import time

import torch
from torch import nn

from gflow.train import checkpoint

steps, seconds = int(sys.argv[1]) if len(sys.argv) > 1 else 100, float(sys.argv[2]) if len(sys.argv) > 2 else 0.1
torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
saves = checkpoint.Checkpoint("checkpoints", model=model, optimizer=optimizer)
print("from step", saves.step, flush=True)
for step in saves.steps(steps, every=50):
    optimizer.zero_grad()
    nn.functional.mse_loss(model(torch.randn(8, 4)), torch.ones(8, 1)).backward()
    optimizer.step()
    time.sleep(seconds)
    print("step", step, flush=True)
print("weights", [round(one, 6) for one in nn.utils.parameters_to_vector(model.parameters()).tolist()])
