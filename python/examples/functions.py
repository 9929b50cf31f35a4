# SPDX-License-Identifier: Apache-2.0
"""A function whose calls are jobs with a GPU each (`pip install 'gflow[cloudpickle]'` for functions of a script, as here)."""

import os

import gflow


@gflow.function(gpus=1, time_limit=3600)
def train(lr: float) -> tuple[float, str]:
    return lr, os.environ["CUDA_VISIBLE_DEVICES"]


if __name__ == "__main__":
    for lr, gpu in train.map([0.1, 0.01]):
        print(lr, "was on GPU", gpu)
    with gflow.Executor(gpus=0.5) as executor:
        print(executor.submit(pow, 2, 10).result())
