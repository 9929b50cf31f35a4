# SPDX-License-Identifier: Apache-2.0
"""A model and its data on one device: `gbatch --gpus 1 python model_on_device.py`."""

import torch
from torch import nn


class SimpleNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(10, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.fc(x))


device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = SimpleNet().to(device)
output = model(torch.randn(5, 10).to(device))
print("model on", next(model.parameters()).device.type, "output", tuple(output.shape), "none below zero:", bool((output >= 0).all()))
