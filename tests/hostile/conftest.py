# SPDX-License-Identifier: Apache-2.0
import pytest
from make_town import make_town


@pytest.fixture
def bare_town():
    """A town without a daemon."""
    made = make_town()
    try:
        yield made
    finally:
        made.close()


@pytest.fixture(scope="module")
def town():
    """One daemon for the tests of a file: no user's harm may reach the next test."""
    made = make_town()
    try:
        made.up()
        yield made
    finally:
        made.close()
