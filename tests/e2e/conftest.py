# SPDX-License-Identifier: Apache-2.0
import pytest
from fake_gpu import Gpus
from machine import Machine

pytest.register_assert_rewrite("park_job")  # what a job of it is not, is said as in a test


@pytest.fixture
def gpus(tmp_path):
    """The GPUs of a fake driver, and what programs do with them."""
    made = Gpus(tmp_path)
    yield made
    made.end()


@pytest.fixture
def gpu_machine():
    """A gflowd, not started, whose NVIDIA libraries are those of tests/fake_cuda; `fake` are its GPUs."""
    made = Machine("nvml")
    made.fake = Gpus(made.work)
    made.environment |= {
        name: made.fake.environment[name]
        for name in ("GFLOW_FAKE_CUDA", "LD_LIBRARY_PATH")
    }
    try:
        yield made
    finally:
        made.close()
