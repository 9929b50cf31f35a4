# SPDX-License-Identifier: Apache-2.0
"""That of the distribution: CMakeLists.txt says it once."""

from __future__ import annotations

from importlib import metadata

try:
    __version__ = metadata.version("gflow")
except metadata.PackageNotFoundError:  # run from a checkout
    __version__ = "0+unknown"
