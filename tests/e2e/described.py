# SPDX-License-Identifier: Apache-2.0
"""Answers against the description that gflowd serves: none has a header of which that does not tell."""

import functools
import re
import urllib.parse

from machine import Machine

# What is true of HTTP anywhere, and of pages that are let in.
OF_HTTP = {"cache-control", "connection", "content-encoding", "content-length", "content-type", "date", "server", "transfer-encoding",
           "vary", "access-control-allow-headers", "access-control-allow-methods", "access-control-allow-origin",
           "access-control-expose-headers", "access-control-max-age"}
# Of what is no operation of the description: another method, a path that is not there, a request that is none.
OF_ANY = {401: {"www-authenticate"}, 429: {"retry-after"}, 503: {"retry-after"}}


@functools.cache
def description():
    """That of a gflowd which is there for nothing else: no test counts what it is asked."""
    made = Machine("none")
    try:
        made.up()
        return made.get("/api/v1/openapi.json")
    finally:
        made.close()


def resolved(described, value):
    while "$ref" in value:
        part = described
        for name in value["$ref"].removeprefix("#/").split("/"):
            part = part[name]
        value = part
    return value


def headers_of(described, operation, status):
    """By name; None for an answer that is not told of."""
    told = operation["responses"].get(str(status))
    if told is None:
        return None
    headers = resolved(described, told).get("headers", {})
    return {name: resolved(described, header) for name, header in headers.items()}


def operation_at(described, method, target):
    """None where it leads to none."""
    path = urllib.parse.urlsplit(target).path
    method = "get" if method == "HEAD" else method.lower()
    for template in sorted(described["paths"], key=lambda one: "{" in one):  # jobs/newest before jobs/{id}
        pattern = re.sub(r"\{(\w+)\}", lambda name: "[0-9]+" if name[1] == "id" else "[^/]+", template)
        if re.fullmatch(pattern, path) and method in described["paths"][template]:
            return described["paths"][template][method]
    return None


def untold(described, method, target, status, names):
    """Those of the headers of an answer which it does not tell of."""
    operation = operation_at(described, method, target)
    told = operation and headers_of(described, operation, status)
    may = {name.lower() for name in told} if told is not None else {"x-request-id"} | OF_ANY.get(status, set())
    if operation is None:
        may.add("allow")
    return {name.lower() for name in names} - may - OF_HTTP


def check_told(method, target, status, names):
    unknown = untold(description(), method, target, status, names)
    assert not unknown, f"{method} {target}: {status} has {unknown}, of which openapi.json does not tell"
