# SPDX-License-Identifier: Apache-2.0
import pytest
from fake_gpu import Gpus


@pytest.fixture
def gpus(tmp_path):
    """The GPUs of a fake driver, and what programs do with them."""
    made = Gpus(tmp_path)
    yield made
    made.end()
