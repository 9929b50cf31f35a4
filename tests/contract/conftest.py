# SPDX-License-Identifier: Apache-2.0
import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "hostile"))

from town import Town  # noqa: E402


@pytest.fixture
def town():
    if os.geteuid() != 0:
        pytest.skip("only root can run a daemon for all users")
    try:
        made = Town()
    except OSError as error:
        pytest.skip(f"no namespaces here: {error}")
    try:
        yield made
    finally:
        made.close()
