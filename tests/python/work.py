# SPDX-License-Identifier: Apache-2.0
"""Functions that tests send to jobs, which import this module."""

import functools
import os
import signal
import sys
import types

import gflow


def visible(item):
    return item, os.environ["CUDA_VISIBLE_DEVICES"], int(os.environ["GFLOW_JOB_ID"])


def divide(item):
    return 12 / item


def taken_of(item):
    """Raises StopIteration of an empty list."""
    return next(iter(item))


def stops(item):
    raise StopAsyncIteration


def wait_for(path):
    with open(path) as gate:
        return gate.read()


def killed():
    os.kill(os.getpid(), signal.SIGKILL)


def leaves():
    os._exit(0)


def killed_at_last():
    """Raises at first."""
    if os.environ["GFLOW_ATTEMPT"] == "1":
        raise ValueError("first attempt")
    killed()


def spoils_the_next():
    """Raises; what is in its directory then keeps the next attempt from beginning."""
    with open("gflow.py", "w") as shadow:
        shadow.write("raise SystemExit(3)")
    raise ValueError("first attempt")


def killed_by(item):
    killed()


class Odd(Exception):
    """Cannot be read back: it is made of two, and pickled with one."""

    def __init__(self, one, two):
        super().__init__(one)


def odd():
    raise Odd(1, 2)


class Exits:
    """Ends the program that reads it back."""

    def __reduce__(self):
        return sys.exit, (4,)


class BecomesText(Exception):
    def __reduce__(self):
        return str, ("text",)


def becomes_text():
    raise BecomesText("gone")


class SaysNothing(Exception):
    """It can be written, not be read, and not be shown."""

    def __init__(self, first, second):
        super().__init__(first)

    def __repr__(self):
        raise ValueError("not now")

    def __str__(self):
        return "what it says"


def says_nothing():
    raise SaysNothing(1, 2)


def of_the_job_alone():
    """Raises what is of a module that there is only in the job."""
    module = sys.modules["of_the_job"] = types.ModuleType("of_the_job")
    module.Alone = type("Alone", (Exception,), {"__module__": "of_the_job"})
    raise module.Alone("why")


def exits():
    return Exits()


def asks_for_none(server):
    gflow.Client(server).job(99)


def unreadable():
    return lambda: 0


@gflow.function(gpus=1, name="trained")
def train(lr, *, epochs=1):
    """Trains."""
    return lr * epochs, os.environ.get("CUDA_VISIBLE_DEVICES")


def doubled(function):
    """A decorator of somebody else."""
    @functools.wraps(function)
    def call(*arguments):
        return 2 * function(*arguments)

    return call


@doubled
@gflow.function()
def inside(x):
    return x + 1


@gflow.function()
@doubled
def outside(x):
    return x + 1


class Model:
    def __init__(self, weight):
        self.weight = weight

    @gflow.function(name="fit")
    def fit(self, x):
        """Fits."""
        return self.weight * x

    @gflow.function()
    @classmethod
    def named(cls, x):
        return cls.__name__, x

    @gflow.function()
    @staticmethod
    def plain(x):
        return x, "plain"

    @doubled
    def bare(self, x):
        return self.weight + x


class Deep(Model):
    def fit(self, x):
        return -x
