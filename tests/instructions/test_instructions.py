# SPDX-License-Identifier: Apache-2.0
"""How many instructions a submission, that of an array, the end of a job with the next start, a page and loading take.

Times change with whatever else the machine does; instructions do not, so a small regression is seen. They differ by compiler
and by library, so like is compared with like: with the yardstick of the same run (work of the same kind that is not gflow's,
by the same compiler), per compiler; and with 10,000 waiting jobs against 100, whatever the compiler. counts.json has what was
so when it was last recorded. After a change that is meant: GFLOW_RECORD=1 python3 -m pytest tests/instructions"""

import json
import os
import pathlib
import re
import shutil
import subprocess

import pytest

FOLDER = pathlib.Path(__file__).parent
PROGRAMS = pathlib.Path(os.environ["GFLOW_BIN_DIR"]).parent / "instructions"
FEW, MANY = 100, 10_000
TOLERANCE = 0.08  # of the counts; library versions of one compiler differ by less than half of it
GROWTH = 0.10     # from FEW jobs to MANY: a tree is a little deeper, nothing is walked through
ARRAY_GROWTH = 5  # from FEW tasks to MANY: their ids are in the answer, and nothing else is done for each


def counted(folder):
    """Instructions by operation, of one run."""
    subprocess.run(
        ["valgrind", "--tool=callgrind", "--instr-atstart=no", f"--callgrind-out-file={folder}/counts",
         str(PROGRAMS / "counted_operations"), str(FEW), str(MANY)], check=True, capture_output=True, timeout=600)
    counts = {}
    for path in folder.glob("counts.*"):
        text = path.read_text()
        name = re.search(r"^desc: Trigger: Client Request: (.+)$", text, re.M).group(1)
        counts[name] = int(re.search(r"^totals: (\d+)$", text, re.M).group(1))
    return counts


def compiler():
    """As counted_operations says who made it: "g++ 12"."""
    return subprocess.run([PROGRAMS / "counted_operations"], check=True, capture_output=True, text=True).stdout.strip()


def recorded_of(counts):
    """What is recorded of this compiler, after it was recorded if that is asked for."""
    path = FOLDER / "counts.json"
    recorded = json.loads(path.read_text())
    if os.environ.get("GFLOW_RECORD"):
        recorded[compiler()] = relative(counts)
        path.write_text(json.dumps(recorded, indent=2, sort_keys=True) + "\n")
    return recorded.get(compiler())


def relative(counts):
    """To the yardstick."""
    return {name: round(count / counts["reference"], 4) for name, count in sorted(counts.items()) if name != "reference"}


def grown(counts):
    """What takes more the more jobs wait, or tasks there are."""
    most = {"submit": GROWTH, "end to start": GROWTH, "list": GROWTH, "array": ARRAY_GROWTH}
    growth = {name: round(counts[f"{name} {MANY}"] / counts[f"{name} {FEW}"] - 1, 3) for name in most}
    return {name: rate for name, rate in growth.items() if rate > most[name]}


def changed(counts, recorded):
    """What takes more than it took, or less: what is recorded would let the next regression pass."""
    found = relative(counts)
    return {name: f"{found.get(name)}, recorded is {count}" for name, count in recorded.items()
            if name not in found or abs(found[name] / count - 1) > TOLERANCE}


def test_operations_take_what_they_took(tmp_path):
    if not shutil.which("valgrind") or not (PROGRAMS / "counted_operations").exists():
        assert os.environ.get("CI") != "true", "valgrind or its headers are missing"
        pytest.skip("valgrind or its headers are missing (./dev setup)")
    counts = counted(tmp_path)
    assert grown(counts) == {}
    recorded = recorded_of(counts)
    if recorded is None:
        pytest.skip(f"nothing is recorded of {compiler()}: GFLOW_RECORD=1 records it")
    assert changed(counts, recorded) == {}


def test_a_regression_would_be_seen():
    """The comparison itself, on counts that are made up."""
    counts = {"reference": 1000, "load": 500}
    counts |= {f"{name} {jobs}": 2000 for name in ("submit", "end to start", "list", "array") for jobs in (FEW, MANY)}
    recorded = relative(counts)
    assert grown(counts) == {} and changed(counts, recorded) == {}
    assert list(changed(counts | {"load": 600}, recorded)) == ["load"]
    assert list(changed(counts | {"load": 400}, recorded)) == ["load"]
    assert changed({name: 3 * count for name, count in counts.items()}, recorded) == {}  # another machine's library
    assert grown(counts | {f"submit {MANY}": 2400}) == {"submit": 0.2}
    assert grown(counts | {f"array {MANY}": 14_000}) == {"array": 6.0}
