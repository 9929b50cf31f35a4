# SPDX-License-Identifier: Apache-2.0
"""The commands that people have, as they are installed."""

import re
from pathlib import Path

INSTALL = Path(__file__).parents[2] / "cmake/GflowInstall.cmake"
COMMANDS = [*re.search(r"set\(GFLOW_COMMANDS ([a-z ]+)\)", INSTALL.read_text())[1].split(), "gflow", "gflowd"]
