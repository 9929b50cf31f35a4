# SPDX-License-Identifier: Apache-2.0
"""Hooks of schemathesis (SCHEMATHESIS_HOOKS): what answers with news, or as long as a job runs, is asked for what is there now.

Everything else of such a request stays as it was made up. A stream that is followed has no end, and says that it lives more often
than a client's patience ends: that is what it is for, and tests/e2e has its tests.
"""

import schemathesis

STREAMS = {"/api/v1/events", "/api/v1/jobs/{id}/log"}


def is_true(value):
    return str(value[0] if isinstance(value, list) and value else value).lower() in ("true", "1")


@schemathesis.hook
def before_call(context, case, kwargs):
    path = case.operation.path
    query = dict(case.query or {})
    if path in STREAMS and ("follow" not in query or is_true(query["follow"])):
        case.query = query | {"follow": "false"}
    if path == "/api/v1/changes" and str(query.get("revision", "0")).isdigit():
        case.query = query | {"revision": "0"}
