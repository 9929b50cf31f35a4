# SPDX-License-Identifier: Apache-2.0
"""Texts of one user on the screen of another."""

import json

import pytest

NAMES = {
    "escapes": "\x1b[2J\x1b[31mroot\x1b]0;title\x07",
    "lines": "a\nSubmitted batch job 1\r\n JOBID",
    "backspace": "honest\x08\x08\x08\x08\x08\x08evil",
    "c1": "\u009b31mred",
    "right to left": "\u202egnp.exe",
    "wide": "\u4efb\u52a1" * 40,
    "long": "x" * 100_000,
    "empty": "",
    "dots": "../../../../etc/passwd",
    "format": "%s%s%n {} {name} $(id) `id`",
    "option": "--all",
}


@pytest.mark.parametrize("kind", NAMES)
def test_a_name_is_refused_or_shown_harmlessly(town, kind):
    body = json.dumps({"items": [{"spec": {"name": NAMES[kind], "project": NAMES[kind], "work_dir": "/", "hold": True,
                                           "request": {}}, "payload": {"argv": ["true"]}}]})
    status, text = town.ask("mallory", "POST", "/api/v1/jobs", body)
    if status == 400:
        assert not any(ord(letter) < 32 and letter != "\n" for letter in text), "the refusal, too, is harmless"
        return
    assert status == 201, text
    job = json.loads(text)["items"][0]["id"]
    for words in (["gqueue", "-u", "all", "-a"], ["gjob", "show", job], ["gqueue", "-u", "all", "-a", "-f", "JOBID,NAME"],
                  ["gjob", "why", job], ["gqueue", "--tree", "-u", "all"]):
        shown = town.run("bob", *words)
        raw = [letter for letter in shown.out + shown.err if ord(letter) < 32 and letter != "\n" or 0x7F <= ord(letter) < 0xA0]
        assert raw == [], f"{words}: {raw}"
        assert "\u202e" not in shown.out, f"{words}: turns the line round"
    assert json.loads(town.ok("bob", "gqueue", "-u", "all", "-a", "-o", "json"))
    town.ok("mallory", "gcancel", job)


@pytest.mark.parametrize("field, text", [
    ("work_dir", "relative"), ("work_dir", ""), ("work_dir", "/a\0b"), ("name", "a\0b"),
    ("group", "g" * 1000), ("project", "p" * 1000), ("work_dir", "/" + "d" * 5000), ("command", "c" * 100_000),
], ids=["relative", "none", "NUL in a path", "NUL in a name", "group", "project", "path", "command"])
def test_what_no_job_can_have_is_refused(town, field, text):
    spec = {"name": "x", "work_dir": "/", "hold": True, "request": {}} | {field: text}
    body = json.dumps({"items": [{"spec": spec, "payload": {"argv": ["true"]}}]})
    status, answer = town.ask("mallory", "POST", "/api/v1/jobs", body)
    assert status in (400, 413, 422), f"{status} {answer[:300]}"
