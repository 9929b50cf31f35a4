# SPDX-License-Identifier: Apache-2.0
"""A daemon that serves its metrics over TCP, and how they are read."""

import contextlib
import json
import re
import urllib.request

from machine import PATIENCE


@contextlib.contextmanager
def metered(machine):
    """The machine with its daemon up, and `url`."""
    machine.environment["GFLOW_API__LISTEN"] = "127.0.0.1:0"
    try:
        machine.up()
        machine.url = json.loads(machine.ok("gflowd", "status", "--json"))["api_url"]
        yield machine
    finally:
        machine.close()


def scrape(machine, accept=""):
    request = urllib.request.Request(machine.url + "/metrics", headers={"Accept": accept})
    with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
        return answer.headers["Content-Type"], answer.read().decode()


def value(text, series):
    found = re.search(rf"^{re.escape(series)} (\S+)$", text, re.MULTILINE)
    return float(found[1]) if found else None
