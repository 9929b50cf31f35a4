# SPDX-License-Identifier: Apache-2.0
"""Data that are learned in a moment: signals of two kinds, and a line; and what needs too much memory for it."""

import resource

import numpy as np


def signals(count=64, length=32):
    """Slow and fast vibrations, told apart by their label."""
    random = np.random.default_rng(0)
    labels = np.arange(count) % 2
    time = np.linspace(0, 1, length)
    x = np.sin(2 * np.pi * np.where(labels, 8, 2)[:, None] * (time + random.random((count, 1))))
    return x.astype("float32"), np.where(labels, "fast", "slow")


def line(count=64, width=10):
    x = np.random.default_rng(1).normal(size=(count, width)).astype("float32")
    return x, x.sum(axis=1)


def of_limited_memory(run):
    """A real shortage: more than this process may have, unless the batch is in parts."""
    import torch

    torch.set_num_threads(1)
    torch.ones(4).sum()
    with open("/proc/self/statm") as pages:
        has = int(pages.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (has + (224 << 20), -1))
    return int(torch.ones(run.part_size, 1 << 20).sum()) >> 20  # 4 MB each
