# SPDX-License-Identifier: Apache-2.0
"""The table of rights.py, asked line by line: of gflowd for several users, as other users, over TCP and TLS, with real tokens."""

import json
import re
import sys
from pathlib import Path

import pytest
from rights import LEVELS, SCOPES, TABLE, WHO, at_level, filled, missing, path_of, who_may
from shared_lab import CALLED, SECRET, TOML, Lab

sys.path.insert(0, str(Path(__file__).parents[1] / "hostile"))

from make_town import make_town  # noqa: E402


@pytest.fixture(scope="module", params=LEVELS)
def level(request):
    """What users are shown of others' jobs."""
    return request.param


@pytest.fixture(scope="module")
def lab(level):
    town = make_town()
    try:
        made = Lab(town)
        made.show_of_others(level)
        yield made
    finally:
        town.close()


def test_every_route_has_its_line(lab):
    description = lab.of_alice("/api/v1/openapi.json")
    assert missing(description) == set(), "a route needs its line in rights.py, and a line its route"
    assert len({(method, path_of(target)) for method, target, *_ in TABLE}) == len(TABLE)


def test_openapi_says_who_may(lab):
    """Of the routes of the socket alone (x-scope is missing) nothing can be seen here: all of these ask over TCP."""
    description = lab.of_alice("/api/v1/openapi.json")
    for method, target, _, _, statuses in TABLE:
        told = description["paths"][path_of(target)][method.lower()]
        if "x-scope" in told or who_may(statuses).startswith("everyone, known"):
            assert told["x-who"] == who_may(statuses), (method, target)


def test_what_is_looked_for_in_the_answers_of_others_is_there(lab, level):
    names = lab.make("job")
    for who, told in (("owner", True), ("read", True), ("operator", True), ("other", False)):
        status, text = lab.ask(who, "GET", f"/api/v1/jobs/{names['id']}", None)
        assert status == (404 if who == "other" and level == "none" else 200)
        assert (SECRET in text) == told, (who, text)
        assert (CALLED in text) == (told or level == "all"), (who, text)
    lab.take_away("job", names)


def put_right(lab, method, target, made):
    """What was done once is not to stand in the way of the next."""
    if target == "/api/v1/daemon/stop":
        lab.town.run("root", "gflowd", "down", "--system")  # until it has ended
        lab.up()
    if (method, target) == ("POST", "/api/v1/drain"):
        assert lab.ask("admin", method, target, {"gpu": 31, "resume": True})[0] == 200
    if "allocation_id" in made:
        assert lab.ask("admin", "DELETE", f"/api/v1/gpu/allocations/{made['allocation_id']}", None)[0] == 200
        lab.town.run("root", "gjob", "wait", str(made["allocation_id"]))  # its GPUs are free, too


LINES = pytest.mark.parametrize(("method", "target", "what", "body", "statuses"), TABLE, ids=lambda one: one if isinstance(one, str) else "")


@LINES
def test_each_gets_what_is_theirs(lab, level, method, target, what, body, statuses):
    names = None
    for who, status in zip(WHO, statuses, strict=True):
        names = names or lab.make(what)
        before = lab.seen(what, names)
        got, text = lab.ask(who, method, filled(target, names), filled(body, names))
        assert got == at_level(level, method, target, body, who, status), (who, text)
        if who not in ("owner", "operator", *SCOPES):
            told = text.replace(names["name"], "") if "{name}" in target else text
            assert SECRET not in told, (who, text)
            assert level == "all" or CALLED not in told, (who, text)
        if who == "other" and level == "none":
            check_nothing_is_told(lab, method, target, body, names, (got, text))
        if got >= 400 or method == "GET":
            assert lab.seen(what, names) == before, who
            continue
        put_right(lab, method, target, json.loads(text) if "allocate" in target or "setup" in target else {})
        lab.take_away(what, names)
        names = None
    if names:
        lab.take_away(what, names)


NOBODY = 987_654_321  # an id that no job has


def ids_in(text):
    """The jobs that an answer names, wherever it does."""
    found = {int(one) for one in re.findall(r"""(?:\bjobs? |job_id="|hpc_job="|/jobs/|/allocations/)(\d+)""", text)}

    def look(value, key="", listed=False):
        if isinstance(value, dict):
            for name, one in value.items():
                if not (name == "id" and "type" in value):  # that of an event is its own
                    look(one, name)
        elif isinstance(value, list):
            for one in value:
                look(one, key, listed=True)
        elif isinstance(value, int) and key in (LISTS if listed else FIELDS):
            found.add(value)

    for line in text.splitlines() if "\ndata: " in text else [text]:
        try:
            look(json.loads(line.removeprefix("data: ")))
        except ValueError:
            continue
    return found


FIELDS = {"id", "job", "allocation_id", "first_job", "last_job", "next_after", "trial"}
LISTS = {"jobs", "victims", "tried", "released"}


def check_nothing_is_told(lab, method, target, body, names, answer):
    """The answer has nothing of alice's job, and is the one that a job which does not exist would have got."""
    status, text = answer
    if "{id}" not in target and "{id}" not in str(body):
        assert names.get("id") not in ids_in(text), text
        return
    like = lab.ask("other", method, filled(target, names | {"id": NOBODY}), filled(body, names | {"id": NOBODY}))
    assert (status, without_ids(text)) == (like[0], without_ids(like[1]))


def without_ids(text):
    problem = json.loads(text)
    problem.pop("instance", None)  # the id of the request
    return re.sub(r"\d{2,}|\b\d\b", "N", json.dumps(problem))


# What is asked besides of the routes of the table that show something: each way to look for a job, and what other forms there are.
QUERIES = (
    *(("GET", f"/api/v1/jobs?{query}", None, "*/*") for query in (
        f"name=*{CALLED}*", "project={project}", "group={group}", "user=alice", "sort=name", "sort=-name&limit=1", "sort=-priority", "job={theirs}",
        "fields=spec.name,spec.project,spec.group")),
    *(("GET", f"/api/v1/statistics?{query}", None, "*/*") for query in ("by=user", "by=project", "project={project}", "user=alice")),
    ("GET", "/api/v1/groups?user=alice", None, "*/*"),
    ("GET", "/api/v1/groups/{group}", None, "*/*"),
    ("GET", "/api/v1/events?follow=false", None, "*/*"),
    ("GET", "/api/v1/events?follow=false&user=alice", None, "*/*"),
    ("GET", "/api/v1/events?follow=false&job={theirs}", None, "*/*"),
    ("GET", "/api/v1/changes?revision=0&job={theirs}", None, "*/*"),
    ("GET", "/api/v1/jobs/{own}", None, "*/*"),
    ("GET", "/api/v1/jobs/{own}/explain", None, "*/*"),
    ("GET", "/metrics", None, "application/openmetrics-text"),
    ("POST", "/api/v1/place", {"request": {"gpus": 32}, "dependencies": {"jobs": ["{theirs}"]}}, "*/*"),
    ("POST", "/api/v1/place", {"request": {"gpus": 32}}, "*/*"),
    ("POST", "/api/v1/gpu/validate", {"gpu_count": 32, "ttl_seconds": 60}, "*/*"),
    ("POST", "/api/v1/gpu/allocate", {"gpu_count": 32, "ttl_seconds": 60}, "*/*"),
    ("POST", "/api/v1/jobs/cancel", {"jobs": ["{own}", "{theirs}"]}, "*/*"),
)
MADE_OF_THE_CODE = ("/api/v1/settings", "/api/v1/openapi.json", "/docs")  # these name people, but no jobs of theirs


def of_ids(value, names):
    """As filled(), where a list may have ids."""
    if isinstance(value, dict):
        return {key: of_ids(one, names) for key, one in value.items()}
    if isinstance(value, list):
        return [names[one[1:-1]] if isinstance(one, str) and one.startswith("{") else one for one in value]
    return value


@pytest.fixture(scope="module")
def crowded():
    """alice has every GPU and more that waits, and what ended; bob waits behind her."""
    town = make_town()
    try:
        yield crowd(Lab(town))
    finally:
        town.close()


def crowd(lab):
    lab.town.ok("root", "tee", "-a", TOML, input="[metrics]\njobs = true\nusers = true\ndcgm = true\n")
    lab.show_of_others("all")
    whole = {"request": {"gpus": 32}}
    theirs = [lab.make(whole)["id"]]
    lab.town.running(theirs[0])
    theirs += [lab.make(whole | more)["id"] for more in ({}, {"hold": True}, {"dependencies": {"jobs": theirs[:1]}})]
    theirs.append(lab.make({"request": {"gpus": 0}})["id"])
    lab.town.running(theirs[-1])
    lab.take_away("running", {"id": theirs[-1]})
    lab.town.gone(theirs[-1])
    lab.all_theirs = set(theirs)
    item = {"spec": {"work_dir": "/", "command": "true", **whole}, "payload": {"argv": ["true"], "environment": []}}
    status, text = lab.bob.ask("POST", "/api/v1/jobs", {"items": [item]})
    assert status == 201, text
    spec = lab.of_alice(f"/api/v1/jobs/{theirs[0]}")["spec"]
    lab.names = {"theirs": theirs[0], "own": json.loads(text)["items"][0]["id"], "project": spec["project"], "group": spec["group"]}
    return lab


@pytest.mark.parametrize("others_jobs", LEVELS)
def test_who_waits_is_told_no_more_of_others_than_the_setting_lets(crowded, others_jobs):
    """Whatever bob can read while alice keeps him waiting, in every form there is; the setting changes while gflowd runs."""
    crowded.show_of_others(others_jobs)
    names, told = crowded.names, ""
    looks = [(method, target, None, "*/*") for method, target, *_ in TABLE if method == "GET" and "{" not in target]
    for method, target, body, accept in (*looks, *QUERIES):
        status, text = crowded.ask("other", method, target.format(**names), of_ids(body, names), accept)
        asked = (method, target, body, status, text)
        assert status < 500 and SECRET not in text, asked
        told += text.replace(names["group"], "") if "/groups/{" in target else text
        assert others_jobs == "all" or CALLED not in told, asked
        if others_jobs != "none" or target.startswith(MADE_OF_THE_CODE):
            continue
        assert "alice" not in text, asked
        assert "{theirs}" in f"{target} {body}" or not ids_in(text) & crowded.all_theirs, asked
    assert (CALLED in told) == (others_jobs == "all")
    # Sums over all jobs, before and after one of them, tell of that one.
    sums = crowded.ask("other", "GET", "/metrics", None)[1]
    for family in ("gflow_jobs", "gflow_jobs_pending", "gflow_jobs_ended_total", "gflow_job_runtime_seconds", "gflow_gpu_seconds_total"):
        assert (f"# TYPE {family} " in sums) == (others_jobs != "none"), family
        assert f"# TYPE {family} " in crowded.ask("operator", "GET", "/metrics", None)[1], family
    why = crowded.ask("other", "GET", f"/api/v1/jobs/{names['own']}/explain", None)[1]
    assert (names["theirs"] in ids_in(why)) == (others_jobs != "none"), why
    for who in ("owner", "operator"):
        status, text = crowded.ask(who, "GET", f"/api/v1/jobs/{names['theirs']}", None)
        assert status == 200 and SECRET in text and CALLED in text, (who, text)
        status, text = crowded.ask(who, "GET", "/api/v1/machine", None)
        assert CALLED in text and names["theirs"] in ids_in(text), (who, text)


def test_nobody_finds_out_by_a_dependency_whether_a_job_is_there(crowded):
    crowded.show_of_others("none")
    told = set()
    for job in (crowded.names["theirs"], NOBODY):
        status, text = crowded.ask("other", "PATCH", f"/api/v1/jobs/{crowded.names['own']}", {"dependencies": {"jobs": [job]}})
        assert status == 404, text
        told.add(without_ids(text))
    assert len(told) == 1, told


def test_what_is_taken_away_is_not_sent_any_more(crowded):
    """A stream that was begun when more was shown ends with the change, and goes on with what is shown now."""
    crowded.show_of_others("all")
    kept = crowded.ask("other", "GET", "/api/v1/events?follow=false", None)[1]
    first = re.search(r"^id: (\d+)$", kept, re.MULTILINE)[1]
    stream = crowded.town.start("bob", "curl", "-sN", f"http://127.0.0.1:{crowded.port}/api/v1/events?after={first}")
    told = []
    while not told or CALLED not in told[-1]:
        told.append(stream.stdout.readline().decode())
        assert told[-1]
    crowded.show_of_others("none")
    told += stream.communicate()[0].decode().splitlines()
    assert stream.returncode != 0
    last = max(int(line.split()[1]) for line in told if line.startswith("id: "))
    status, text = crowded.ask("other", "GET", f"/api/v1/events?follow=false&after={last}", None)
    assert status == 200 and CALLED not in text and not ids_in(text) & crowded.all_theirs, text


def test_who_waits_for_news_of_what_is_taken_away_gets_none(crowded):
    crowded.show_of_others("all")
    api, job = f"http://127.0.0.1:{crowded.port}/api/v1", crowded.names["theirs"]
    revision = json.loads(crowded.ask("other", "GET", f"/api/v1/changes?job={job}&revision=0", None)[1])["revision"]
    # The first answer is there before the second is asked for, over the same connection.
    asked = crowded.town.start("bob", "curl", "-sN", "-w", "\n%{http_code}\n", f"{api}/jobs/{job}", f"{api}/changes?job={job}&revision={revision}")
    assert CALLED in asked.stdout.read1().decode()
    crowded.show_of_others("none")
    assert asked.stdout.read().split()[-1] in (b"503", b"404")
    asked.communicate()


def test_why_launches_fail_is_told_to_operators(lab, level):
    """What a job met there names it and its directory."""
    attempts = "/var/lib/gflow/attempts"
    lab.town.ok("root", "mv", attempts, attempts + ".away")
    lab.town.ok("root", "touch", attempts)
    job = int(lab.town.ok("alice", "gbatch", "--parsable", "true"))
    try:
        while not json.loads(lab.town.ok("root", "ginfo", "--json"))["unhealthy"]:
            pass  # each round asks gflowd, which tries to start it
        told = lab.town.ok("mallory", "gflowd", "status", "--json") + lab.town.ok("mallory", "ginfo", "--json")
        hidden = lab.town.ok("bob", "gflowd", "status", "--json") + lab.town.ok("bob", "ginfo", "--json")
        assert attempts in told, told
        assert (attempts in hidden) == (level != "none"), hidden
    finally:
        lab.town.ok("root", "rm", attempts)
        lab.town.ok("root", "mv", attempts + ".away", attempts)
    lab.town.ok("root", "gjob", "wait", str(job))
