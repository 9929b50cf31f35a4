#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fails where a file uses a name of the standard library without including its header.

Files are compiled together and standard libraries include one another, each version differently: what
compiles here need not compile with the next one. A .cpp file may rely on the header of its own name.

    check_includes.py [--fix] FILE...
"""
import pathlib
import re
import sys

# Only names that one header has, and that people use by "std::".
HEADERS = {
    "algorithm": "ranges::(?:all_of|any_of|none_of|find_if|find_if_not|find|sort|stable_sort|count_if|count|copy|"
    "transform|equal|max_element|min_element|lower_bound|upper_bound|binary_search|for_each|fill|reverse|unique|"
    "contains|includes|set_difference|set_intersection|remove_if|search|is_sorted|nth_element|rotate|max|min)|"
    "clamp|min|max|sort|stable_sort|find_if|all_of|any_of|none_of|lower_bound|upper_bound|nth_element",
    "array": "array",
    "atomic": "atomic(?:_bool|_int|_flag)?",
    "bit": "bit_ceil|bit_floor|bit_width|bit_cast|popcount|countr_zero|has_single_bit|rotl",
    "cerrno": None,
    "charconv": "from_chars|to_chars",
    "chrono": "chrono::",
    "compare": "strong_ordering|weak_ordering|partial_ordering",
    "condition_variable": "condition_variable",
    "cstdint": "u?int(?:8|16|32|64|ptr|max)_t",
    "deque": "deque",
    "expected": "expected|unexpected",
    "filesystem": "filesystem::",
    "fstream": "[io]?fstream",
    "functional": "function|reference_wrapper|ref|cref|hash|bind_front|invoke",
    "limits": "numeric_limits",
    "list": "list",
    "map": "(?:multi)?map",
    "memory": "unique_ptr|shared_ptr|weak_ptr|make_unique|make_shared|enable_shared_from_this",
    "mutex": "mutex|scoped_lock|unique_lock|lock_guard|once_flag|call_once",
    "numeric": "accumulate|iota|gcd|lcm|reduce|partial_sum|midpoint",
    "optional": "optional|nullopt",
    "queue": "queue|priority_queue",
    "random": "mt19937(?:_64)?|uniform_int_distribution|random_device",
    "regex": "regex",
    "set": "(?:multi)?set",
    "span": "span",
    "sstream": "[io]?stringstream",
    "string": "string|to_string|stoi|stoll|getline",
    "string_view": "string_view",
    "system_error": "error_code|system_error|errc",
    "thread": "thread|jthread|this_thread::",
    "tuple": "tuple|tie|make_tuple",
    "unordered_map": "unordered_map",
    "unordered_set": "unordered_set",
    "utility": "move|exchange|pair|make_pair|swap|forward|to_underlying|in_place|cmp_less",
    "variant": "variant|visit|get_if|holds_alternative|monostate",
    "vector": "vector",
}
# A header that promises another's names, in the standard itself.
GIVES = {
    "map": {"compare"}, "set": {"compare"}, "vector": {"compare"}, "string": {"string_view", "compare"},
    "optional": {"compare"}, "variant": {"compare"}, "tuple": {"compare"}, "utility": {"compare"},
    "chrono": {"compare"}, "array": {"compare"}, "sstream": {"string"}, "fstream": {"string"},
}
USES = {
    header: re.compile(rf"\bstd::(?:{names})(?:\b|(?<=::))")
    for header, names in HEADERS.items()
    if names is not None
}
INCLUDE = re.compile(r"^#include <([^>]+)>", re.M)
COMMENTS = re.compile(r'//[^\n]*|"(?:[^"\\\n]|\\.)*"')


def included(path: pathlib.Path) -> set[str]:
    """What the file includes, with what its own header does."""
    names = set(INCLUDE.findall(path.read_text()))
    if path.suffix == ".cpp":
        own = re.sub(r"_test$", "", path.stem)
        header = path.with_name(own + ".h")
        if header.exists():
            names |= set(INCLUDE.findall(header.read_text()))
    for name in list(names):
        names |= GIVES.get(name, set())
    return names


def missing(path: pathlib.Path) -> list[str]:
    text = COMMENTS.sub("", path.read_text())
    there = included(path)
    return [header for header, uses in USES.items() if header not in there and uses.search(text)]


def fix(path: pathlib.Path, headers: list[str]) -> None:
    text = path.read_text()
    for header in headers:
        line = f"#include <{header}>\n"
        # C++ headers have no dot or slash in their names; they stand in one block, sorted.
        block = [m for m in re.finditer(r"^#include <([a-z_]+)>\n", text, re.M)]
        if block:
            after = next((m.start() for m in block if m.group(1) > header), block[-1].end())
            text = text[:after] + line + text[after:]
            continue
        first = re.search(r'^#include "(?!%s)' % re.escape(f"{path.parent.name}/{path.stem}.h"), text, re.M)
        where = first.start() if first else text.index("\n#", 0) + 1
        text = text[:where] + line + "\n" + text[where:]
    path.write_text(text)


def main(arguments: list[str]) -> int:
    fixing = arguments[:1] == ["--fix"]
    failed = False
    for name in arguments[fixing:]:
        path = pathlib.Path(name)
        lacks = missing(path)
        if lacks and fixing:
            fix(path, lacks)
        elif lacks:
            failed = True
            print(f"{name}: uses names of <{'>, <'.join(lacks)}>")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
