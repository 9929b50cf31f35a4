# SPDX-License-Identifier: Apache-2.0
"""The examples, as a person runs them."""

from package import ROOT
from pypi import program

EXAMPLES = ROOT / "python/examples"


def test_jobs(python):
    assert python(EXAMPLES / "jobs.py").splitlines() == [
        f"lr{lr} Finished ['prepared', 'lr', '{lr}']" for lr in ("0.1", "0.01", "0.001")]


def test_lease(python):
    assert python(EXAMPLES / "lease.py").splitlines() == ["free now: [0]", "mine: ['RTX3090', 'RTX3090'] 0,1"]


def test_functions(python):
    first, second, power = python(EXAMPLES / "functions.py", program=program("python")).splitlines()
    assert first.startswith("0.1 was on GPU ") and second.startswith("0.01 was on GPU ") and power == "1024"


def test_dask_workers(python, dask_over_tls):
    lines = python(EXAMPLES / "dask_workers.py", program=program("python")).splitlines()
    assert [line[:-1] for line in lines] == [f"{rate} was on GPU " for rate in (0.1, 0.01, 0.001)]
