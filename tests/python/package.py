# SPDX-License-Identifier: Apache-2.0
"""Where the package is, for its tests."""

import os
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "python/src"


def blessed(path, text):
    """Compares a generated file with what it should be; GFLOW_BLESS=1 writes it."""
    if os.environ.get("GFLOW_BLESS"):
        path.write_text(text)
    assert path.read_text() == text, f"{path} is not what it is made from says: run this test with GFLOW_BLESS=1"
