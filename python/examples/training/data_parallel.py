# SPDX-License-Identifier: Apache-2.0
"""One process, each batch divided among its GPUs: `gbatch --gpus 2 python data_parallel.py`. For more than a try take ddp.py."""

import torch
from torch import nn

torch.manual_seed(0)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model: nn.Module = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 14 * 14, 10)).to(device)
gpus = torch.cuda.device_count()
print("GPUs:", gpus)
if gpus > 1:
    model = nn.DataParallel(model)

images, labels = torch.randn(32, 3, 16, 16), torch.ones(32, dtype=torch.long)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
losses = []
for _ in range(5):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(images.to(device)), labels.to(device))
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss fell:", losses[-1] < losses[0])
