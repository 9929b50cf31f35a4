#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints "passed failed skipped" summed over the JUnit files given, then one line per failed test.

Reads what ctest --output-junit and pytest --junit-xml write. A file that cannot be read counts as
one failure: a test run that left no report did not go well.
"""
import sys
import xml.etree.ElementTree as ElementTree


def outcome(case: ElementTree.Element) -> str:
    if case.find("failure") is not None or case.find("error") is not None:
        return "failed"
    skipped = case.find("skipped")
    if skipped is not None:
        # What ctest could not start is "skipped" to it; a test that was not built is not well.
        return "failed" if skipped.get("message", "").startswith("Unable to find") else "skipped"
    if case.get("status") == "disabled":
        return "skipped"
    return "passed"


def main(files: list[str]) -> None:
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    failures = []
    for file in files:
        try:
            cases = list(ElementTree.parse(file).getroot().iter("testcase"))
        except (OSError, ElementTree.ParseError) as error:
            counts["failed"] += 1
            failures.append(f"{file}: {error}")
            continue
        for case in cases:
            kind = outcome(case)
            counts[kind] += 1
            if kind == "failed":
                failures.append(f"{case.get('classname') or ''} {case.get('name')}")
    print(counts["passed"], counts["failed"], counts["skipped"])
    for failure in failures:
        print(failure)


if __name__ == "__main__":
    main(sys.argv[1:])
