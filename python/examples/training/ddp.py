# SPDX-License-Identifier: Apache-2.0
"""A process for each GPU, each with its part of the data: `gbatch --gpus 2 --launch ddp python ddp.py`.

Ranks, address and port are in the environment: `init_process_group` needs nothing else. Without CUDA it is gloo on CPUs."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
rank, world, local = dist.get_rank(), dist.get_world_size(), int(os.environ["LOCAL_RANK"])
device = torch.device("cuda", local) if torch.cuda.is_available() else torch.device("cpu")

torch.manual_seed(0)
data = TensorDataset(torch.randn(64, 4), torch.randn(64, 1))
sampler: DistributedSampler[tuple[torch.Tensor, ...]] = DistributedSampler(data, num_replicas=world, rank=rank)
model = DistributedDataParallel(nn.Linear(4, 1).to(device))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(2):
    sampler.set_epoch(epoch)
    for inputs, wanted in DataLoader(data, batch_size=8, sampler=sampler):
        optimizer.zero_grad()
        nn.functional.mse_loss(model(inputs.to(device)), wanted.to(device)).backward()
        optimizer.step()

# Whatever part each saw, all have the same weights.
mine = nn.utils.parameters_to_vector(model.parameters()).detach()
least, most = mine.clone(), mine.clone()
# A work that is kept is freed with the program. Else a thread of gloo frees it, which aborts a Python before 3.14 that ends.
works = [dist.all_reduce(least, op=dist.ReduceOp.MIN, async_op=True), dist.all_reduce(most, op=dist.ReduceOp.MAX, async_op=True)]
for work in works:
    work.wait()
print(f"rank {rank} of {world}: {len(sampler)} of {len(data)} samples, weights alike: {torch.equal(least, most)}", flush=True)
works.append(dist.barrier(async_op=True))  # who goes first takes the connections of the others with it
works[-1].wait()
dist.destroy_process_group()
