# SPDX-License-Identifier: Apache-2.0
"""What CUDA_VISIBLE_DEVICES means: `gbatch --gpus 2 python visible_devices.py`.

    "1"        only GPU 1 is seen, as device 0
    "0,2,3"    GPUs 0, 2 and 3, as devices 0, 1 and 2
    ""         none

gflow sets it for a job to the GPUs it was given. A program may narrow it for what it starts; it has to be set before PyTorch
looks at it first, so each of these is a process of its own."""

import os
import subprocess
import sys

COUNT = "import os, torch; print(repr(os.environ['CUDA_VISIBLE_DEVICES']), 'devices:', torch.cuda.device_count())"


def count(visible: str) -> None:
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": visible}
    subprocess.run([sys.executable, "-c", COUNT], env=environment, check=True)


given = os.environ.get("CUDA_VISIBLE_DEVICES", "")
print("given:", given, flush=True)
count(given.split(",")[0])
count("")
