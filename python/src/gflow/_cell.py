# SPDX-License-Identifier: Apache-2.0
"""What a job of a notebook's cell runs."""

from __future__ import annotations

import ast
import inspect
import linecache
import sys
import types
from collections.abc import Mapping, Sequence
from typing import Any

FILE = "<gflow cell>"
AWAITS = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT


def run_cell(source: str, sent: Mapping[str, Any], wanted: Sequence[str]) -> dict[str, Any]:
    """The variables `wanted` of what it leaves. The value of a last expression is printed, and what is awaited is, as notebooks do."""
    module = types.ModuleType("__main__")  # what is defined in it is sent back whole
    sys.modules["__main__"] = module
    module.__dict__.update(sent)
    linecache.cache[FILE] = (len(source), None, source.splitlines(keepends=True), FILE)
    tree = ast.parse(source, FILE)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    parts = [compile(tree, FILE, "exec", AWAITS, dont_inherit=True)]
    if isinstance(last, ast.Expr):
        parts.append(compile(ast.Expression(last.value), FILE, "eval", AWAITS, dont_inherit=True))
    value = _value_of(parts, module.__dict__)
    if value is not None:
        print(repr(value))
    missing = [name for name in wanted if name not in module.__dict__]
    if missing:
        raise NameError(f"the cell left no variable '{missing[0]}' to bring back")
    return {name: module.__dict__[name] for name in wanted}


def _value_of(parts: Sequence[types.CodeType], names: dict[str, Any]) -> Any:
    """Of the last part; all of them on one event loop where something is awaited."""
    if any(part.co_flags & inspect.CO_COROUTINE for part in parts):
        import asyncio

        return asyncio.run(_awaited_value_of(parts, names))
    return [eval(part, names) for part in parts][-1]


async def _awaited_value_of(parts: Sequence[types.CodeType], names: dict[str, Any]) -> Any:
    value = None
    for part in parts:
        value = eval(part, names)
        if part.co_flags & inspect.CO_COROUTINE:
            value = await value
    return value
