# SPDX-License-Identifier: Apache-2.0
"""What gqueue lists when it is told in which order, and how many."""

import itertools

KEYS = ("id", "state", "time", "name", "gpus", "priority")
JOBS = 40


def ids(machine, *options):
    return machine.ok("gqueue", "-a", "-f", "JOBID", "--noheader", *options).split()


def submit_some(machine):
    for n in range(JOBS):
        options = ["--hold"] if n % 3 == 0 else []
        options += ["--name", f"n{n * 7 % 5}", "--priority", str(1 + n % 4), "--gpus", str(n % 3)]
        machine.submit("--begin", "now+1d", *options, "true")


def test_a_listing_that_is_cut_is_an_end_of_the_whole(bare):
    bare.up()
    submit_some(bare)
    for key, sign in itertools.product(KEYS, ("", "-")):
        whole = ids(bare, f"-r{sign}{key}")
        assert len(whole) == JOBS
        assert ids(bare, f"-r{sign}{key}", "-n", "7") == whole[:7]
        assert ids(bare, f"-r{sign}{key}", "-n", "-7") == whole[-7:]
        assert ids(bare, f"-r{sign}{key}", "-n", "100") == whole
    assert ids(bare, "-n", "-3") == [str(JOBS - 2), str(JOBS - 1), str(JOBS)]
    some = ids(bare, "-j", "5-25", "-n", "-2")
    assert some == ["24", "25"]


def test_the_daemon_cuts_what_it_is_asked_to_cut(bare):
    bare.up()
    submit_some(bare)
    page = bare.get("/api/v1/jobs?sort=-priority&limit=3")
    assert [job["id"] for job in page["jobs"]] == [4, 8, 12]
    assert page["next_after"] is None
    page = bare.get("/api/v1/jobs?sort=-id&limit=3")
    assert [job["id"] for job in page["jobs"]] == [40, 39, 38]
    page = bare.get(f"/api/v1/jobs?sort=-id&limit=3&after={page['next_after']}")
    assert [job["id"] for job in page["jobs"]] == [37, 36, 35]
