# SPDX-License-Identifier: Apache-2.0
"""Data and model divided: half as many processes as GPUs, each with a model over two of them.

    gbatch --gpus 4 --launch ddp python hybrid.py

Of the processes of `--launch ddp` each two are a pair: the first of a pair computes with the GPUs of both, the second has nothing
to do. Without CUDA both halves of a model are on the CPU."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

local = int(os.environ["LOCAL_RANK"])
dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
world = dist.get_world_size()
workers = list(range(0, world - 1, 2))
group = dist.new_group(workers)


class SplitModel(nn.Module):
    def __init__(self, first: torch.device, second: torch.device) -> None:
        super().__init__()
        self.first, self.second = first, second
        self.part1 = nn.Sequential(nn.Linear(8, 16), nn.ReLU()).to(first)
        self.part2 = nn.Linear(16, 1).to(second)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        output: torch.Tensor = self.part2(self.part1(x.to(self.first)).to(self.second))
        return output


def train(place: int) -> None:
    torch.manual_seed(0)
    cuda = torch.cuda.is_available()
    first, second = ((torch.device("cuda", local), torch.device("cuda", local + 1)) if cuda else (torch.device("cpu"),) * 2)
    model = DistributedDataParallel(SplitModel(first, second), process_group=group)
    inputs, wanted = torch.randn(64, 8), torch.ones(64, 1)
    mine = slice(place * 64 // len(workers), (place + 1) * 64 // len(workers))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    for _ in range(10):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(inputs[mine]), wanted[mine].to(second))
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    samples = mine.stop - mine.start
    print(f"worker {place} of {len(workers)}: {samples} samples, loss fell: {losses[-1] < losses[0]}", flush=True)


if dist.get_rank() in workers:
    train(workers.index(dist.get_rank()))
everybody = dist.barrier(async_op=True)  # kept: a thread of gloo that frees it aborts a Python before 3.14 that ends
everybody.wait()
dist.destroy_process_group()
