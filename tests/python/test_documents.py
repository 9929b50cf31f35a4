# SPDX-License-Identifier: Apache-2.0
"""The package's types are the API's own, and importing it costs next to nothing."""

import sys
import typing

import pytest
from package import ROOT, blessed

sys.path.insert(0, str(ROOT / "tools"))

import python_documents  # noqa: E402

from gflow import _events, documents  # noqa: E402


def test_the_types_are_those_of_the_api(machine):
    described = machine.get("/api/v1/openapi.json")
    blessed(ROOT / "python/src/gflow/documents.py", python_documents.documents(described))
    # And they are types: each name in them is one that there is.
    names = vars(documents) | {"NotRequired": typing.Optional}
    for name in documents.__all__:
        for hint in getattr(getattr(documents, name), "__annotations__", {}).values():
            eval(hint.__forward_arg__, names)  # noqa: S307


@pytest.mark.parametrize(("schema", "text"), [
    ({"type": "string"}, "str"),
    ({"type": ["integer", "null"]}, "Union[int, None]"),
    ({"type": ["null"]}, "None"),
    ({}, "Any"),
    ({"enum": ["a", None], "type": ["string", "null"]}, 'Union[Literal["a"], None]'),
    ({"type": "array", "items": {"$ref": "#/components/schemas/X"}}, "list[X]"),
    ({"anyOf": [{"$ref": "#/components/schemas/X"}, {"type": "null"}]}, "Union[X, None]"),
    ({"type": "object", "additionalProperties": {"type": "number"}}, "dict[str, float]"),
])
def test_a_schema_is_this_type(schema, text):
    assert python_documents.type_of(schema, {}, "Name") == text


def test_an_event_has_the_fields_of_its_type(machine, client):
    with client.events(type=["job.ended", "node.changed"]) as events:
        client.submit("true").wait()
        of_job = next(events)
        machine.ok("gctl", "drain", "gpu", "1", "--reason", "dusty")
        of_node = next(events)
    for event, document in ((of_job, documents.JobEvent), (of_node, documents.NodeEvent)):
        assert event["kind"] == document.__name__ and set(event) == set(document.__annotations__), event
    assert set(of_job["outcome"]) == set(documents.EndingShown.__annotations__)
    assert (of_node["gpu"], of_node["reason"]) == (1, "dusty")


def test_an_event_is_any_that_is_told(machine):
    told = machine.get("/api/v1/openapi.json")["paths"]["/api/v1/events"]["get"]["responses"]["200"]["content"]
    kinds = told["text/event-stream"]["schema"]["properties"]["data"]["contentSchema"]["anyOf"]
    assert {one.__forward_arg__ for one in typing.get_args(_events.Event)} == {
        "documents." + kind["$ref"].rpartition("/")[2] for kind in kinds}


def test_importing_is_cheap(python):
    """Next to nothing is imported with it, and of the rest what is used: no numpy, no torch, no TLS, no event loop."""
    script = "import sys; before = set(sys.modules); import gflow; {}; print(*sorted(set(sys.modules) - before))"
    bare = python(script=script.format("pass")).split()
    assert {one for one in bare if one.startswith("gflow")} == {"gflow"}
    assert not {"numpy", "torch", "ssl", "asyncio", "json", "socket"} & set(bare), bare
    used = python(script=script.format("gflow.Client")).split()
    assert not {"numpy", "torch", "asyncio", "multiprocessing", "gflow.documents", "gflow.functions"} & set(used), used


def test_every_name_is_there(python):
    out = python(script="import gflow; print([getattr(gflow, name).__name__ for name in gflow.__all__ if name[0] != '_'])")
    assert "AsyncClient" in out and "submit" in out


def test_the_version_is_that_of_gflow(machine):
    version = machine.ok("gflow", "--version").split()[1]
    assert f"project(gflow VERSION {version} " in (ROOT / "CMakeLists.txt").read_text()


