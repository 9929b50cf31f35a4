# SPDX-License-Identifier: Apache-2.0
"""One process, a model that is too large for a GPU divided among two: `gbatch --gpus 2 python model_parallel.py`."""

import torch
from torch import nn


class SplitModel(nn.Module):
    """The first half on one device, the second on another; what is between them travels."""

    def __init__(self, first: torch.device, second: torch.device) -> None:
        super().__init__()
        self.first, self.second = first, second
        self.subnet1 = nn.Sequential(nn.Linear(16, 32), nn.ReLU()).to(first)
        self.subnet2 = nn.Linear(32, 1).to(second)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        between = self.subnet1(x.to(self.first))
        output: torch.Tensor = self.subnet2(between.to(self.second))
        return output


torch.manual_seed(0)
gpus = torch.cuda.device_count()
devices = [torch.device("cuda", one) for one in range(gpus)] if gpus > 1 else [torch.device("cpu")] * 2
model = SplitModel(devices[0], devices[1])
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
inputs, wanted = torch.randn(32, 16), torch.ones(32, 1)
losses = []
for _ in range(20):
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(inputs), wanted.to(devices[1]))
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("parts on", devices[0].type, "and", devices[1].type, "loss fell:", losses[-1] < losses[0] / 2)
