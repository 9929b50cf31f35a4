#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes python/src/gflow/documents.py, the documents of the API as types, from its description (OpenAPI 3.1):

    tools/python_documents.py < openapi.json > python/src/gflow/documents.py

tests/python/test_documents.py compares the two; with GFLOW_BLESS=1 it writes the file.
"""

import json
import sys

HEAD = '''# SPDX-License-Identifier: Apache-2.0
# Made by tools/python_documents.py from /api/v1/openapi.json: change what is described, not this.
"""The documents of the API, as gflowd describes them. They are what JSON gives: dictionaries, lists, text, numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypedDict, Union

if TYPE_CHECKING:
    from typing_extensions import NotRequired
'''

SCALARS = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}


def union(kinds):
    """Without doubles, None last."""
    some = [kind for kind in dict.fromkeys(kinds) if kind != "None"]
    text = ", ".join(some + ["None"] * ("None" in kinds))
    return text if "," not in text or len(some) + ("None" in kinds) == 1 else f"Union[{text}]"


def type_of(schema, made, name):
    """The type of a schema; a class of its own for an object that has no name, put into `made`."""
    if "$ref" in schema:
        return schema["$ref"].rsplit("/", 1)[1]
    if "const" in schema:
        return f"Literal[{json.dumps(schema['const'])}]"
    if "enum" in schema:
        words = ", ".join(json.dumps(word) for word in schema["enum"] if word is not None)
        return union([f"Literal[{words}]"] + ["None"] * (None in schema["enum"]))
    for several in ("anyOf", "oneOf"):
        if several in schema:
            return union([type_of(one, made, f"{name}{place or ''}") for place, one in enumerate(schema[several])])
    kinds = schema.get("type", [])
    return union([plain(schema, kind, made, name) for kind in ([kinds] if isinstance(kinds, str) else kinds)]) or "Any"


def plain(schema, kind, made, name):
    if kind == "array":
        return f"list[{type_of(schema.get('items', {}), made, name + 'Item')}]"
    if kind != "object":
        return SCALARS[kind]
    if "properties" in schema:
        made[name] = class_of(schema, made, name)
        return name
    return f"dict[str, {type_of(schema.get('additionalProperties', {}), made, name + 'Value')}]"


def class_of(schema, made, name):
    required = schema.get("required", [])
    lines = [f"class {name}(TypedDict):"]
    if told := schema.get("description"):
        lines.append(f'    """{told}"""')
    for field, its in schema["properties"].items():
        kind = type_of(its, made, name + field.title().replace("_", ""))
        lines.append(f"    {field}: {kind if field in required else f'NotRequired[{kind}]'}")
        if told := its.get("description"):
            lines.append(f'    """{told}"""')
    return "\n".join(lines)


def documents(description):
    """The module's text."""
    made, names = {}, []
    for name, schema in sorted(description["components"]["schemas"].items()):
        inner = {}
        if "properties" in schema:
            text = class_of(schema, inner, name)
        else:
            text = f'{name} = {quoted(type_of(schema, inner, name + "Of"))}'
        made |= inner
        made[name] = text
        names += [*inner, name]
    listed = "".join(f'    "{name}",\n' for name in sorted(names))
    return f"{HEAD}\n__all__ = [\n{listed}]\n\n" + "".join(f"\n{made[name]}\n\n" for name in names).rstrip("\n") + "\n"


def quoted(kind):
    """In an alias names are looked up at once: those that come later stand in quotes."""
    return kind if kind.startswith("Literal") or kind in SCALARS.values() else f'Union["{kind}"]' if "[" not in kind else (
        "Union[" + ", ".join(word if word in SCALARS.values() else f'"{word}"' for word in kind[6:-1].split(", ")) + "]")


if __name__ == "__main__":
    sys.stdout.write(documents(json.load(sys.stdin)))
