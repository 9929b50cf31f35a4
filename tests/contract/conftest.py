# SPDX-License-Identifier: Apache-2.0
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "hostile"))

from make_town import make_town  # noqa: E402


@pytest.fixture
def town():
    """Without a daemon."""
    made = make_town()
    try:
        yield made
    finally:
        made.close()
