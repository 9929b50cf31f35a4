# SPDX-License-Identifier: Apache-2.0
"""Two GPUs for this program, beside the queue; and what it would get without asking for them."""

import os

import gflow

print("free now:", gflow.select(1).indices)
with gflow.gpus(2, timeout=60) as devices:
    print("mine:", [device.gpu_type for device in devices], os.environ["CUDA_VISIBLE_DEVICES"])
