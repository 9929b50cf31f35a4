#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that the code keeps to the layers declared in src/CMakeLists.txt.

The gflow_module(NAME [PURE] [DEPS module...]) calls, and gflow_preload, say which module may include which, and which
are pure; the picture in ARCHITECTURE.md has to say the same. Prints file:line and the rule for every
breach; exits 1 if there is one.
Usage: check_layers.py [ROOT]
"""
import pathlib
import re
import sys
from collections.abc import Iterator

MODULE = re.compile(r"^gflow_(?:module|preload)\(\s*([a-z]+)([^)]*)\)", re.M)
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.M)
STRINGS_AND_COMMENTS = re.compile(
    r'R"\w*\((?:.|\n)*?\)\w*"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'|//[^\n]*|/\*(?:.|\n)*?\*/')
# What a pure module may not touch.
AMBIENT_HEADERS = re.compile(
    r"^(thread|mutex|shared_mutex|condition_variable|future|stop_token|filesystem|fstream|iostream"
    r"|random|cstdio|stdio\.h|unistd\.h|fcntl\.h|dirent\.h|poll\.h|dlfcn\.h|pthread\.h|sys/.+"
    r"|sqlite3\.h|SQLiteCpp/.+|nvml\.h)$")
AMBIENT_CALLS = re.compile(
    r"::now\(|\b(?:std::|::)?(?:getenv|secure_getenv|setenv|fopen|rand|srand|random|usleep"
    r"|nanosleep|clock_gettime|gettimeofday|getpid|getuid|system|popen)\s*\("
    r"|\btime\s*\(\s*(?:0|NULL|nullptr|&\w+)\s*\)"
    r"|\bstd::(?:thread|mutex|jthread|async|random_device|mt19937(?:_64)?|c(?:out|err|in))\b"
    r"|\b(?:sqlite3|nvml)[A-Z_]\w*")
OPEN_HEADERS = {"core", "engine", "api"}  # their headers stay free of other people's
# A line of the picture: "PURE  core  what it is  <- base"; the first word holds until the next.
DRAWN = re.compile(r"^    (?:([A-Z]+)|    ) +([a-z]+) [^<\n]*(?:<- ([a-z ]+))?$", re.M)
STANDARD = re.compile(r"^[a-z_0-9]+$")
MOST_LINES, MOST_TEST_LINES = 600, 800


def read_modules(root: pathlib.Path) -> dict[str, tuple[set[str], bool]]:
    """Module name to (modules it may include, whether it is pure)."""
    modules = {}
    for name, rest in MODULE.findall((root / "src/CMakeLists.txt").read_text()):
        deps = re.search(r"\bDEPS\b(.*?)(?:\b(?:LIBS|SOURCES)\b|$)", rest, re.S)
        modules[name] = (set(deps[1].split()) if deps else set(), "PURE" in rest.split())
    return modules


def find_cycles(modules: dict[str, tuple[set[str], bool]]) -> Iterator[str]:
    """A complaint for every module that reaches itself, and for every dependency not declared."""
    for name, (deps, _) in modules.items():
        for unknown in sorted(deps - modules.keys()):
            yield f"src/CMakeLists.txt:1: {name} depends on {unknown}, which is not a module"
        reached, open_ = set(), list(deps)
        while open_:
            module = open_.pop()
            if module not in reached:
                reached.add(module)
                open_.extend(modules.get(module, (set(), False))[0])
        if name in reached:
            yield f"src/CMakeLists.txt:1: {name} depends on itself through others (cycle)"


def check_picture(root: pathlib.Path, modules: dict[str, tuple[set[str], bool]]) -> Iterator[str]:
    """A complaint for every module that ARCHITECTURE.md draws otherwise than it is declared."""
    path = root / "ARCHITECTURE.md"
    text, part, drawn = path.read_text(encoding="utf-8") if path.exists() else "", "", set()
    for match in DRAWN.finditer(text.split("\n## ")[0]):
        part, name, over = match[1] or part, match[2], set((match[3] or "").split())
        deps, pure = modules.get(name, (None, False))
        drawn.add(name)
        if deps != over or pure != (part == "PURE"):
            yield f"{path.name}:{line_of(text, match.start())}: {name} is declared otherwise"
    if text:
        yield from (f"{path.name}:1: {name} is not drawn" for name in modules.keys() - drawn)


def find_unused(root: pathlib.Path, modules: dict[str, tuple[set[str], bool]]) -> Iterator[str]:
    """A complaint for every dependency of which nothing is included."""
    for name, (deps, _) in modules.items():
        files = [f for f in (root / "src" / name).rglob("*") if f.suffix in (".h", ".cpp")]
        used = {header.split("/")[0] for f in files for _, header in INCLUDE.findall(f.read_text(errors="replace"))}
        for unused in sorted(deps - used) if files else ():
            yield f"src/CMakeLists.txt:1: {name} includes nothing of {unused}: it is needless in its DEPS"


def blanked(text: str) -> str:
    """The text without the content of strings and comments, line numbers kept."""
    return STRINGS_AND_COMMENTS.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), text)


def line_of(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1


def check_includes(path: pathlib.Path, text: str, module: str, modules: dict) -> Iterator[tuple[int, str]]:
    deps, pure = modules[module]
    is_test = path.name.endswith("_test.cpp")
    for match in INCLUDE.finditer(text):
        quote, header = match.groups()
        line, target = line_of(text, match.start(2)), header.split("/")[0]
        if quote == '"' and target in modules and target != module and target not in deps:
            yield line, f"{module} may not include {target}: it is not in its DEPS"
        elif quote == "<" and pure and not is_test and AMBIENT_HEADERS.match(header):
            yield line, f"ambient input in the pure module {module}: <{header}>"
        elif quote == "<" and path.suffix == ".h" and module in OPEN_HEADERS and not STANDARD.match(header):
            yield line, f"third-party header <{header}> in a header of {module}"


def check_file(root: pathlib.Path, path: pathlib.Path, modules: dict) -> Iterator[str]:
    where, text = path.relative_to(root), path.read_text(encoding="utf-8", errors="replace")
    is_test = path.name.endswith("_test.cpp") or where.parts[0] == "tests"
    most, lines = MOST_TEST_LINES if is_test else MOST_LINES, text.count("\n")
    if lines > most:
        yield f"{where}:{most + 1}: {lines} lines, at most {most}: split it by idea"
    module = where.parts[1] if where.parts[0] == "src" and len(where.parts) > 2 else ""
    if module not in modules:
        return
    for line, rule in check_includes(path, text, module, modules):
        yield f"{where}:{line}: {rule}"
    if modules[module][1] and not is_test:
        code = blanked(text)
        for match in AMBIENT_CALLS.finditer(code):
            yield f"{where}:{line_of(code, match.start())}: ambient input in the pure module {module}: {match[0].strip()}"


def main(argv: list[str]) -> int:
    root = pathlib.Path(argv[1] if len(argv) > 1 else pathlib.Path(__file__).parent.parent).resolve()
    modules = read_modules(root)
    complaints = [*find_cycles(modules), *find_unused(root, modules), *check_picture(root, modules)]
    for folder in ("src", "tests", "bench"):
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in (".h", ".cpp", ".py") and path.is_file():
                complaints.extend(check_file(root, path, modules))
    print("\n".join(complaints) if complaints else f"layers: {len(modules)} modules in order")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
