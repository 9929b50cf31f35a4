# SPDX-License-Identifier: Apache-2.0
"""A calendar that is set while gflowd runs, as an administrator or NTP sets it; time that passes is left alone."""

import os

import pytest
from machine import BIN


class Clock:
    """That of a machine whose gflowd is not up yet."""

    def __init__(self, machine):
        library = BIN.parent / "set_clock/libset_clock.so"
        if not library.exists():
            pytest.skip("the library that sets the clock is not built")
        self.root = machine.root
        machine.environment |= {
            "LD_PRELOAD": str(library),
            "GFLOW_SET_CLOCK": str(self.root / "ahead"),
            "ASAN_OPTIONS": machine.environment.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0",
        }
        self.set(0)

    def set(self, seconds):
        """So much ahead of that of the machine."""
        (self.root / "new").write_text(str(seconds))
        os.replace(self.root / "new", self.root / "ahead")
