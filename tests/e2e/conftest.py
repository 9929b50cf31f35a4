# SPDX-License-Identifier: Apache-2.0
import pytest
from machine import Machine


@pytest.fixture
def machine(request):
    """A private machine with a running daemon; @pytest.mark.devices("sim:4xH100") chooses its GPUs."""
    marker = request.node.get_closest_marker("devices")
    made = Machine(*(marker.args if marker else ()))
    try:
        made.up()
        yield made
    finally:
        made.close()


@pytest.fixture
def bare(request):
    """The same without a daemon."""
    marker = request.node.get_closest_marker("devices")
    made = Machine(*(marker.args if marker else ()))
    try:
        yield made
    finally:
        made.close()
