# SPDX-License-Identifier: Apache-2.0
import signal
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent / "e2e"))

from machine import Machine  # noqa: E402

# A shell without job control starts what goes to the background with these ignored, and so would be all that is started here.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGQUIT, signal.SIG_DFL)


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
