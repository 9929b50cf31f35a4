# SPDX-License-Identifier: Apache-2.0
"""What is told of times where the clock is set while gflowd runs."""

import json
from datetime import datetime, timedelta

import pytest
from clock import Clock
from http_client import ask


def left(machine, allocation):
    """Of its time, as a client reckons that compares the times that it is told."""
    asked = datetime.fromisoformat(ask(machine, "GET", "/api/v1/gpu/status").document["timestamp"])
    given = ask(machine, "GET", f"/api/v1/gpu/allocations/{allocation}").document
    return datetime.fromisoformat(given["expires_at"]) - asked


@pytest.mark.parametrize("ahead", [7200, -7200, 400 * 86400])
def test_an_allocation_ends_by_the_clock_that_there_is(bare, ahead):
    clock = Clock(bare)
    bare.environment["TZ"] = "UTC"
    bare.up()
    hour = timedelta(hours=1)
    body = json.dumps({"ttl_seconds": 3600})
    given = ask(bare, "POST", "/api/v1/gpu/allocate", body).document["allocation_id"]
    assert timedelta(0) < left(bare, given) <= hour
    clock.set(ahead)
    assert timedelta(0) < left(bare, given) <= hour
    renewed = ask(bare, "POST", f"/api/v1/gpu/allocations/{given}/renew", json.dumps({"ttl_seconds": 7200}))
    assert renewed.status == 200, renewed
    assert hour < left(bare, given) <= timedelta(hours=2, seconds=1)
    bare.kill_daemon()
    bare.up()
    assert hour < left(bare, given) <= timedelta(hours=2, seconds=1)
