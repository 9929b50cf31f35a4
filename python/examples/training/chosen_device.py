# SPDX-License-Identifier: Apache-2.0
"""One process on one device: `gbatch --gpus 1 python chosen_device.py 0`. A job sees the GPUs it was given, numbered from 0."""

import os
import sys

import torch


def device_of(number: int) -> torch.device:
    count = torch.cuda.device_count()
    if count == 0:
        print("no GPU that PyTorch can use: the CPU computes")
        return torch.device("cpu")
    if not 0 <= number < count:
        raise SystemExit(f"there is no GPU {number}: this job has {count}")
    return torch.device(f"cuda:{number}")


print("the job was given GPUs", os.environ.get("GFLOW_GPU_INDICES"), "and sees", os.environ.get("CUDA_VISIBLE_DEVICES"))
device = device_of(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
left = torch.arange(9.0, device=device).reshape(3, 3)
right = torch.ones(3, 4, device=device)
product = torch.matmul(left, right)
print("product", tuple(product.shape), "on", product.device.type, "sum", product.sum().item())
