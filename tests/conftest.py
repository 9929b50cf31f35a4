# SPDX-License-Identifier: Apache-2.0
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent / "e2e"))

from machine import Machine  # noqa: E402


@pytest.fixture
def bare(request):
    """A private machine without a daemon; @pytest.mark.devices("sim:4xH100") chooses its GPUs."""
    marker = request.node.get_closest_marker("devices")
    made = Machine(*(marker.args if marker else ()))
    try:
        yield made
    finally:
        made.close()


@pytest.fixture
def machine(bare):
    """The same with its daemon running."""
    bare.up()
    return bare
