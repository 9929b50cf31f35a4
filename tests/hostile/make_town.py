# SPDX-License-Identifier: Apache-2.0
import os

import pytest
from town import Town


def make_town():
    """A town, or a skipped test where there can be none."""
    if os.geteuid() != 0:
        pytest.skip("only root can run a daemon for all users")
    try:
        return Town()
    except OSError as error:
        pytest.skip(f"no namespaces here: {error}")
