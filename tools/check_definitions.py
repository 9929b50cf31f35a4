#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Finds functions and types that two files of src/ define in one namespace under one name.

Where both end in one program the linker keeps one of two inline functions or templates, which one depends on the order of
the files, and says nothing: compilers see one file at a time, and -Wodr compares types, not what functions do. What only
one file needs belongs into an anonymous namespace. Reads code as clang-format leaves it: what a namespace holds begins at
the start of a line.
Usage: check_definitions.py [ROOT]
"""
import pathlib
import re
import sys
from collections import defaultdict
from collections.abc import Iterator

from check_layers import blanked, line_of

NAMESPACE = re.compile(r"^(?:inline )?namespace ?([\w:]*) \{|^\}  // namespace ?([\w:]*)", re.M)
HEAD = r"^(?P<head>(?:template <[^;{}]*?>\n)?(?:  requires [^\n]*\n)?)"
FUNCTION = re.compile(HEAD + r"(?=\w)(?!namespace|using|friend|struct|class|enum|union|extern|template)"
                             r"(?P<before>[\w:<>,*&\[\] ]*?[\w>*&\]][ \n][*&]?)(?P<name>operator\W{1,3}|\w+)"
                             r"\((?P<parameters>(?:[^;{}]|\{\})*?)\)[^;{}()]*?\{", re.M)
TYPE = re.compile(HEAD + r"(?:struct|class|enum class|enum|union) (?:\[\[\w+\]\] )?(?P<name>[\w:]+(?:<[^;{}]*?>)?)"
                         r"(?: final)?(?: : [^;{()]*)? \{", re.M)


def namespaces(text: str) -> list[tuple[int, str]]:
    """Where each namespace begins or goes on, and its name; "" stands for an anonymous one in it."""
    stack, found = [], []
    for match in NAMESPACE.finditer(text):
        if match[0].startswith("}"):
            if stack:
                stack.pop()
        else:
            stack.append(match[1])
        found.append((match.end(), "/".join(stack) if "" not in stack else ""))
    return found


def squeezed(text: str) -> str:
    """What tells templates apart: their parameters and constraints."""
    return " ".join(text.split()) + " " if text else ""


def parameters(text: str) -> str:
    """Types alone: "Io& io, const Job& job = {}" is "Io&,const Job&"."""
    depth, words = 0, [""]
    for letter in text:
        depth += letter in "<([{"
        depth -= letter in ">)]}"
        if letter == "," and depth == 0:
            words.append("")
        else:
            words[-1] += letter
    types = []
    for word in words:
        word = re.sub(r"\s*=.*", "", " ".join(word.split()))
        types.append(re.sub(r"(?<=[\w>&*\]]) ?\b\w+$", "", word) if re.search(r"[ &*>]\w+$", word) else word)
    return ",".join(types)


def definitions(path: pathlib.Path) -> Iterator[tuple[str, int]]:
    """What the file defines that others could define, too: its full name, and the line."""
    whole = path.read_text(encoding="utf-8", errors="replace")
    spans = namespaces(whole)  # what ends one is a comment
    text = blanked(whole)

    def inside(at: int) -> str:
        name = ""
        for begin, namespace in spans:
            if begin > at:
                break
            name = namespace
        return name

    for match in FUNCTION.finditer(text):
        if "static" not in match["before"].split() and (namespace := inside(match.start("name"))):
            name = f"{match['name']}({parameters(match['parameters'])})"
            yield f"{namespace}::{squeezed(match['head'])}{name}", line_of(text, match.start("name"))
    for match in TYPE.finditer(text):
        if namespace := inside(match.start("name")):
            yield f"{namespace}::{squeezed(match['head'])}{match['name']}", line_of(text, match.start("name"))


def main(argv: list[str]) -> int:
    root = pathlib.Path(argv[1] if len(argv) > 1 else pathlib.Path(__file__).parent.parent).resolve()
    found = defaultdict(list)
    for path in sorted((root / "src").rglob("*")):
        if path.suffix in (".h", ".cpp") and path.is_file():
            for name, line in definitions(path):
                found[name].append((path.relative_to(root), line))
    complaints = []
    for name, places in sorted(found.items()):
        if len({path for path, _ in places}) > 1:
            first, *others = places
            complaints += [f"{path}:{line}: {name} is defined in {first[0]}:{first[1]}, too" for path, line in others]
    print("\n".join(complaints) if complaints else f"definitions: {len(found)} names, each in one file")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
