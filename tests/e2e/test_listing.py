# SPDX-License-Identifier: Apache-2.0
"""What gqueue lists when it is told in which order, and how many."""

import csv
import io
import itertools
import json
import subprocess
import sys

from http_client import ask
from terminal import on_terminal

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
    assert page["next"] and page["next_after"] is None
    page = bare.get(f"/api/v1/jobs?sort=-priority&limit=3&after={page['next']}")
    assert [job["id"] for job in page["jobs"]] == [16, 20, 24]
    page = bare.get("/api/v1/jobs?sort=-id&limit=3")
    assert [job["id"] for job in page["jobs"]] == [40, 39, 38]
    page = bare.get(f"/api/v1/jobs?sort=-id&limit=3&after={page['next_after']}")
    assert [job["id"] for job in page["jobs"]] == [37, 36, 35]


def pages(machine, query):
    """The ids of page after page, to the end."""
    after = ""
    while after is not None:
        page = machine.get(f"/api/v1/jobs?{query}{after}")
        yield [job["id"] for job in page["jobs"]]
        after = page["next"] and f"&after={page['next']}"


def test_pages_in_every_order_are_the_whole(bare):
    bare.up()
    submit_some(bare)
    for key, sign, end in itertools.product(KEYS, ("", "-"), ("", "&reverse=true")):
        order = f"sort={sign}{key}{end}"
        whole = [job["id"] for job in bare.get(f"/api/v1/jobs?{order}")["jobs"]]
        assert sorted(whole) == list(range(1, JOBS + 1))
        for limit in (1, 7, JOBS - 1, JOBS):
            assert sum(pages(bare, f"{order}&limit={limit}"), []) == whole, (order, limit)


def test_what_comes_and_ends_meanwhile_moves_none_to_another_page(bare):
    bare.up()
    submit_some(bare)
    for order in ("sort=-priority", "sort=name", "sort=gpus&reverse=true", "sort=-id", "sort=id"):
        whole = [job["id"] for job in bare.get(f"/api/v1/jobs?{order}")["jobs"]]
        seen = []
        for shown, of_page in enumerate(pages(bare, f"{order}&limit=9")):
            seen += of_page
            if shown < 3:  # one that was shown and one that was not end, and there is a new one at either end of the order
                bare.run("gcancel", seen[-1], next(job for job in reversed(whole) if job not in seen))
                for name, priority in (("a", "0"), ("z", "10")):
                    bare.submit("--begin", "now+1d", "--name", name, "--priority", priority, "true")
        assert [job for job in seen if job in whole] == whole, order
        assert len(seen) == len(set(seen)), order


def test_one_that_is_sorted_otherwise_meanwhile_is_where_it_then_stands(bare):
    bare.up()
    for priority in (30, 20, 10):
        bare.submit("--hold", "--priority", priority, "true")
    by_priority, by_id = pages(bare, "sort=-priority&limit=1"), pages(bare, "limit=1")
    assert (next(by_priority), next(by_id)) == ([1], [1])
    bare.ok("gjob", "update", "1", "--priority", "5")  # its place is still to come
    bare.ok("gjob", "update", "3", "--priority", "25")
    bare.ok("gjob", "update", "2", "--priority", "40")  # has gone by
    assert (list(by_priority), list(by_id)) == ([[3], [1]], [[2], [3]])


def test_a_place_in_another_order_is_refused(bare):
    bare.up()
    submit_some(bare)
    after = bare.get("/api/v1/jobs?sort=-priority&limit=3")["next"]
    for query in (f"sort=name&after={after}", f"after={after}", "sort=name&after=3", "sort=name&after=c"):
        answer = ask(bare, "GET", f"/api/v1/jobs?{query}")
        assert answer.status == 400 and "after" in answer.document["detail"], answer


def test_what_is_printed_page_by_page_is_the_whole_listing(bare):
    bare.up()
    bare.ok("gbatch", "--hold", "--array", "1-2500", "true")
    whole = json.loads(bare.ok("gqueue", "-o", "json"))["jobs"]
    assert [job["id"] for job in whole] == list(range(1, 2501))
    for limit in (2500, 1000, 1001, 7):
        lines = bare.ok("gqueue", "-o", "jsonl", "-n", str(limit)).splitlines()
        assert [json.loads(line)["id"] for line in lines] == list(range(1, limit + 1))
    names = [[str(job["id"]), job["spec"]["name"]] for job in whole]
    assert list(csv.reader(io.StringIO(bare.ok("gqueue", "-o", "csv", "-f", "JOBID,NAME")))) == [["JOBID", "NAME"], *names]
    assert bare.ok("gqueue", "-o", "tsv", "-f", "JOBID,NAME", "--noheader").splitlines() == ["\t".join(name) for name in names]
    table = [line.split() for line in bare.ok("gqueue", "-f", "JOBID,NAME").splitlines()]
    assert table == [["JOBID", "NAME"], *names]
    assert bare.ok("gqueue", "-f", "{jobid} {name}").splitlines() == [" ".join(name) for name in names]
    ran = bare.run("gqueue", "-s", "Running", "-o", "csv", "-f", "JOBID,NAME")
    assert ran.code == 0 and ran.out == "JOBID,NAME\n" and "No jobs" not in ran.out, ran


def test_jobs_that_are_named_and_not_there_are_named(machine):
    machine.submit("--hold", "true")
    for jobs, missing, listed in (("99", "is no job 99", []), ("98,99", "are no jobs 98-99", []), ("99,1,97", "are no jobs 97,99", ["1"])):
        ran = machine.run("gqueue", "-j", jobs, "-f", "JOBID", "--noheader")
        assert (ran.code, ran.out.split(), ran.err) == (3, listed, f"gqueue: there {missing}\n"), ran
    assert machine.ok("gqueue", "-j", "1,99", "-s", "Running", "-f", "JOBID", "--noheader") == ""
    machine.ok("gcancel", "--me")


def test_an_empty_list_says_what_more_there_is(machine):
    hints = {option: on_terminal(machine, "gqueue", *option)[0].screen.text() for option in ((), ("-a",), ("-c",))}
    assert "'gqueue -a' also lists ended jobs" in hints[()]
    for option in (("-a",), ("-c",)):
        assert "No jobs." in hints[option] and "gqueue -a" not in hints[option], hints


def test_an_option_that_would_do_nothing_is_refused(machine):
    ran = machine.run("gqueue", "--interval", "abc")
    assert (ran.code, ran.err.splitlines()[0]) == (2, "gqueue: --interval requires --watch"), ran
    for command, form, unused in (
        (["gqueue", "--json", "-f", "JOBID"], "--json", "--format"),
        (["gqueue", "-o", "jsonl", "--noheader"], "--output jsonl", "--noheader"),
        (["gqueue", "-o", "csv", "--tree"], "--output csv", "--tree"),
        (["gqueue", "-f", "{jobid}", "-o", "csv"], "--format TEMPLATE", "--output"),
        (["gqueue", "--json", "-o", "csv"], "--json", "--output csv"),
        (["gqueue", "--json", "-w", "--interval", "5"], "--json", "--interval"),
        (["ginfo", "--topo", "-1"], "--topo", "--brief"),
        (["ginfo", "-1", "--json"], "--brief", "--json"),
        (["gjob", "log", "--path", "--last", "3", "1"], "--path", "--last"),
        (["gbatch", "--dry-run", "--wait", "true"], "--wait", "--dry-run"),
        (["gbatch", "--parsable", "--json", "true"], "--parsable", "--json"),
        (["gctl", "snapshot", "-o", "now.json", "--json"], "--output", "--json"),
    ):
        ran = machine.run(*command)
        assert (ran.code, ran.out) == (2, ""), ran
        assert ran.err.splitlines()[0] == f"{' '.join(command[:1 + (command[0] in ('gjob', 'gctl'))])}: {form} and {unused} are mutually exclusive", ran
    ran = machine.run("gbatch", "-v", "true")
    assert (ran.code, ran.err.splitlines()[0]) == (2, "gbatch: --verbose requires --dry-run"), ran
    ran = machine.run("gcancel", "--all")
    assert (ran.code, ran.err.splitlines()[0]) == (2, "gcancel: --all is not an option; 'gcancel --me' cancels all of your jobs"), ran


# ru_maxrss begins with what the process had before exec: a child of this large one would tell of this one, so that a
# small one starts it.
MEASURE = """
import os, sys
nowhere = (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)
process = os.posix_spawnp(sys.argv[1], sys.argv[1:], os.environ, file_actions=[nowhere])
_, status, usage = os.wait4(process, 0)
print(usage.ru_maxrss)
sys.exit(os.waitstatus_to_exitcode(status) != 0)
"""


def peak_memory(machine, *command):
    """KiB a command took at most. AddressSanitizer keeps what was given back, to catch its use: not here."""
    options = machine.environment.get("ASAN_OPTIONS", "") + ":quarantine_size_mb=0:thread_local_quarantine_size_kb=0"
    measured = subprocess.run([sys.executable, "-I", "-S", "-c", MEASURE, *command],
                              env={**machine.environment, "ASAN_OPTIONS": options}, stdout=subprocess.PIPE, check=True)
    return int(measured.stdout)


def test_a_listing_line_by_line_takes_the_memory_of_a_page(bare):
    bare.up()
    bare.ok("gbatch", "--hold", "--array", "1-1000", "true")
    page = peak_memory(bare, "gqueue", "-o", "jsonl")
    bare.ok("gbatch", "--hold", "--array", "1-9000", "true")
    assert peak_memory(bare, "gqueue", "-o", "jsonl") < 1.5 * page
