# SPDX-License-Identifier: Apache-2.0
"""The pages of the Python API, made of docstrings: `./dev docs`."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

from gflow import errors

project = "gflow"
author = "the authors of gflow"
copyright = author  # noqa: A001
version = release = (Path(__file__).parents[2] / "CMakeLists.txt").read_text().split("project(gflow VERSION ")[1].split()[0]
extensions = ["sphinx.ext.autodoc", "sphinx.ext.doctest", "sphinx.ext.viewcode"]
html_theme = "alabaster"
html_theme_options = {"description": "Share the GPUs of a machine", "fixed_sidebar": True, "page_width": "70em"}
html_show_copyright = False
default_role = "code"
add_module_names = False
autodoc_member_order = "bysource"
autodoc_use_type_comments = False
autodoc_default_options = {"members": True}
doctest_global_setup = "import gflow"

_ERRORS = [name for name, one in vars(errors).items() if isinstance(one, type) and issubclass(one, errors.GflowError)]
_ERROR = re.compile(rf"(?<![\w.`])({'|'.join(_ERRORS)})(?![\w`])")
_PARAMETER = re.compile(r"(\w+): (.+)")


def _with_links(text: str) -> str:
    return _ERROR.sub(r":exc:`~gflow.errors.\1`", text)


def _names_of(described: Any) -> set[str]:
    try:
        return set(inspect.signature(described).parameters)
    except (TypeError, ValueError):
        return set()


def _field_of(line: str, names: set[str]) -> str:
    """The line as a field, where it begins what is said of a parameter or of errors; "" else."""
    if line.startswith("Errors: "):
        return f":raises: {_with_links(line.removeprefix('Errors: '))}"
    found = _PARAMETER.fullmatch(line)
    return f":param {found[1]}: {found[2]}" if found and found[1] in names else ""


def with_fields(app: Sphinx, what: str, name: str, described: Any, options: Any, lines: list[str]) -> None:
    """Docstrings say "key: what it is" and "Errors: which" as a person reads them; pages have lists of these."""
    made: list[str] = []
    names = _names_of(described)
    is_field = False
    for line in "\n".join(lines).replace(" Errors: ", "\n\nErrors: ").split("\n"):
        field = _field_of(line, names)
        if field:
            made += [field] if is_field else ["", field]
        else:
            made.append(f"    {_with_links(line)}" if is_field and line else line)
        is_field = bool(field) or (is_field and bool(line))
    lines[:] = made


def setup(app: Sphinx) -> None:
    app.connect("autodoc-process-docstring", with_fields)
