# SPDX-License-Identifier: Apache-2.0
"""Algorithms that tests give to the training engine, whose processes import this module."""

import os
import signal


def seen(run):
    """What a process of a training is told and sees."""
    return {"visible": os.environ.get("CUDA_VISIBLE_DEVICES"), "devices": list(run.told["devices"]), "data": run.data,
            "params": dict(run.params), "parts": (run.part_size, run.accumulation_steps), "told": dict(run.told)}


def wrong(run):
    raise KeyError(run.params["key"])


def killed(run):
    os.kill(os.getpid(), signal.SIGKILL)


def leaves(run):
    os._exit(7)


def waits(run):
    """Until there is something to read: whoever writes knows that it runs, and when it is gone."""
    with open(run.params["path"]) as gate:
        gate.read(1)


def reads(run):
    with open(run.params["path"]) as gate:
        text = gate.read(1)
    if not text:
        raise EOFError("nothing to read")
    return text


def needs_memory(run):
    """More of it the more is computed at once, and in 32 bits; a GPU has less than the machine."""
    on_gpu = run.told["devices"][0] != "cpu"
    if run.part_size > run.params.get("room", 1000) or (on_gpu and run.params.get("not_on_gpu")) or (on_gpu and not run.told["amp"]):
        raise RuntimeError("CUDA out of memory. Tried to allocate 20.00 GiB")
    return run.part_size


class OneNumber:
    """As NumPy's, and tensors of one."""

    def __float__(self):
        return 0.25


def reports(run):
    run.report(2, loss=OneNumber(), accuracy=1)


def together(run):
    run.report(1, loss=0.5)
    return run.rank, run.world_size, os.environ["LOCAL_RANK"], os.environ["MASTER_ADDR"], os.environ["WORLD_SIZE"]


def second_fails(run):
    if run.rank == 1:
        raise ValueError("of the second")
    waits(run)
