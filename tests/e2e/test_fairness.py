# SPDX-License-Identifier: Apache-2.0
"""Whatever one user's jobs look like, the queue stays readable and the daemon answers."""

import os


def all_jobs(machine):
    """Every page of the listing, as a client reads them."""
    jobs, after = [], 0
    while after is not None:
        page = machine.get(f"/api/v1/jobs?limit=1000&after={after}")
        jobs += page["jobs"]
        after = page["next_after"]
    return jobs


def test_many_to_many_dependencies_stay_readable(machine):
    """600 jobs that depend on 600 others: 360,000 edges, each shown twice."""
    count = 600
    machine.ok("gbatch", "--hold", "--array", f"1-{count}", "true")
    machine.ok("gbatch", "--hold", "--array", f"1-{count}", "true")
    first, second = f"1-{count}", f"{count + 1}-{2 * count}"
    machine.ok("gjob", "update", second, "--depends-on", first, "--no-auto-cancel")
    for _ in range(2):
        listed = machine.ok("gqueue", "-a", "-f", "JOBID,DEPENDS").splitlines()
        assert len(listed) == 2 * count + 1 and listed[-1].startswith(f"{2 * count} ") and listed[-1].count(",") == count - 1
        assert len(all_jobs(machine)) == 2 * count
        machine.ok("gflowd", "restart")
    machine.ok("gcancel", f"1-{2 * count}")
    assert {job["status"] for job in all_jobs(machine)} == {"Cancelled"}


def test_a_job_with_too_many_dependencies_is_refused(bare):
    bare.config("[limits]\nmax_dependencies_per_job = 3\nmax_dependencies_per_user = 5\n")
    bare.up()
    bare.ok("gbatch", "--hold", "--array", "1-4", "true")
    refused = bare.run("gbatch", "--depends-on", "1-4", "true")
    assert refused.code == 1 and "it depends on 4 jobs; the maximum is 3" in refused.err, refused
    bare.submit("--depends-on", "1-3", "true")
    refused = bare.run("gbatch", "--depends-on", "1-3", "true")
    assert refused.code == 1 and "the user's waiting jobs have 3, and the maximum is 5" in refused.err, refused


def test_jobs_that_reserve_nothing_start_a_few_at_a_time(bare):
    """However many there are, so many run at once as may, and readers are answered while they start."""
    count = 2000 if os.environ.get("GFLOW_TEST_FULL") else 400
    most = 50
    bare.config(f"[limits]\nmax_unreserved_per_user = {most}\n")
    bare.up()
    bare.ok("gbatch", "--cpus", "0", "--array", f"1-{count}", "true")
    newest, reasons = set(), set()
    while waiting := bare.get("/api/v1/jobs?state=PD&limit=1")["jobs"]:
        reasons.add(waiting[0]["reason"].split(" of its")[0])
        active = bare.get("/api/v1/jobs?state=CF,R,CG&limit=1000")["jobs"]
        newest.add(max((job["id"] for job in active), default=0))
    assert f"UserLimit: at most {most}" in reasons, reasons
    assert len(newest) > count // most, "no answer while they started"
    assert {job["status"] for job in bare.wait(*range(1, count + 1))} == {"Finished"}
