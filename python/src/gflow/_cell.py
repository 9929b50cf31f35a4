# SPDX-License-Identifier: Apache-2.0
"""What a job of a notebook's cell runs."""

from __future__ import annotations

import ast
import linecache
import sys
import types
from collections.abc import Mapping, Sequence
from typing import Any

FILE = "<gflow cell>"


def run_cell(source: str, sent: Mapping[str, Any], wanted: Sequence[str]) -> dict[str, Any]:
    """The variables `wanted` of what it leaves. The value of a last expression is printed, as notebooks do."""
    module = types.ModuleType("__main__")  # what is defined in it is sent back whole
    sys.modules["__main__"] = module
    module.__dict__.update(sent)
    linecache.cache[FILE] = (len(source), None, source.splitlines(keepends=True), FILE)
    tree = ast.parse(source, FILE)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, FILE, "exec"), module.__dict__)
    if isinstance(last, ast.Expr):
        value = eval(compile(ast.Expression(last.value), FILE, "eval"), module.__dict__)
        if value is not None:
            print(repr(value))
    missing = [name for name in wanted if name not in module.__dict__]
    if missing:
        raise NameError(f"the cell left no variable '{missing[0]}' to bring back")
    return {name: module.__dict__[name] for name in wanted}
