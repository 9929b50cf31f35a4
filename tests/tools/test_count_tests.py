# SPDX-License-Identifier: Apache-2.0
"""count_tests.py on what ctest and pytest write."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

PROGRAM = pathlib.Path(__file__).resolve().parents[2] / "tools/count_tests.py"

CTEST = """<?xml version="1.0"?>
<testsuite name="x" tests="6">
  <testcase name="good" classname="good" status="run"><system-out>ok</system-out></testcase>
  <testcase name="bad" classname="bad" status="fail"><failure message=""/></testcase>
  <testcase name="gone" classname="gone" status="notrun">
    <skipped message="Unable to find executable"/></testcase>
  <testcase name="later" classname="later" status="notrun">
    <skipped message="SKIP_RETURN_CODE=77"/></testcase>
  <testcase name="off" classname="off" status="disabled"/>
</testsuite>
"""
PYTEST = """<?xml version="1.0"?>
<testsuites><testsuite name="pytest">
  <testcase classname="e2e.test_a" name="test_one"/>
  <testcase classname="e2e.test_a" name="test_two"><error message="x"/></testcase>
  <testcase classname="e2e.test_a" name="test_three"><skipped message="no GPU"/></testcase>
</testsuite></testsuites>
"""


def count(*texts: str) -> list[str]:
    with tempfile.TemporaryDirectory() as folder:
        files = []
        for number, text in enumerate(texts):
            files.append(f"{folder}/{number}.xml")
            pathlib.Path(files[-1]).write_text(text)
        output = subprocess.run([sys.executable, PROGRAM, *files], check=True, capture_output=True, text=True)
        return output.stdout.replace(folder + "/", "").splitlines()


class CountTests(unittest.TestCase):
    def test_every_report_is_summed(self):
        self.assertEqual(count(CTEST, PYTEST),
                         ["2 3 3", "bad bad", "gone gone", "e2e.test_a test_two"])

    def test_nothing_is_nothing(self):
        self.assertEqual(count(), ["0 0 0"])

    def test_a_report_cut_short_is_a_failure(self):
        lines = count(CTEST, "<testsuite><testcase na")
        self.assertEqual(lines[0], "1 3 2")
        self.assertTrue(lines[-1].startswith("1.xml: "), lines)


if __name__ == "__main__":
    unittest.main()
