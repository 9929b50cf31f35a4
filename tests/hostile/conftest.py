# SPDX-License-Identifier: Apache-2.0
import os

import pytest
from town import Town


def make_town():
    if os.geteuid() != 0:
        pytest.skip("only root can run a daemon for all users")
    try:
        return Town()
    except OSError as error:
        pytest.skip(f"no namespaces here: {error}")


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
