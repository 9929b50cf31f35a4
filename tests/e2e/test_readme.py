# SPDX-License-Identifier: Apache-2.0
"""The screens of the README are those that its own lines lead to, in the reader's language."""

import json
import os
import re
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from machine import BIN, PATIENCE
from terminal import Terminal, width_of

TOP = Path(__file__).parents[2]
PEOPLE = {"alice": 2001, "bob": 2002}
LANGUAGES = {"README.md": "C.UTF-8", "README.zh-CN.md": "zh_CN.UTF-8"}
ON_ONE_LINE = re.compile(r"^\$ (gqueue|gqueue -w|ginfo|gjob why .*|gbatch --dry-run .*)\n", re.M)

# A daemon of the machine's own in a namespace where /etc knows two people; it ends with its input.
DAEMON = r"""
set -eu
mount -t tmpfs none /run
mount -t tmpfs none /var/lib
mkdir -p /etc/gflow
mount -t tmpfs none /etc/gflow
mount --bind "$2/passwd" /etc/passwd
mount --bind "$2/group" /etc/group
trap 'gflowd down >/dev/null 2>&1 || true' EXIT
gflowd up --system --devices sim:8xH100 >&2
echo up
read -r end || true
"""


def blocks(text):
    """What stands in its console blocks."""
    return re.findall(r"^```console\n(.*?)^```$", text, re.M | re.S)


def setting(text):
    """Who types what to get the machine of the screens: "alice$ gbatch ..."."""
    (block,) = [block for block in blocks(text) if block.startswith("alice$ ")]
    return [line.split("$ ", 1) for line in block.splitlines()]


def screens(text):
    """Command and what it shows, of each screen of that machine."""
    made = text.index("\nalice$ ")
    return [(ON_ONE_LINE.match(block)[1], ON_ONE_LINE.sub("", block, count=1))
            for block in blocks(text[made:]) if ON_ONE_LINE.match(block)]


def same_at_any_time(text):
    """Without how long it has been, in columns that stay where they are for the hour that the shortest of its jobs may run."""
    def padded(found):
        columns = sum(map(width_of, found[0]))
        left = f"T/{found[1]}"
        return left + " " * (columns - len(left))

    text = re.sub(r"(?:\d+[dhms])+/(\w+) *", padded, text)
    text = re.sub(r"([(（](?:in )?)(?:\d+[dhms])+(?=(?: ago| 前| 后)?[)）])", r"\1T", text)
    text = re.sub(r"(\d\d):\d\d(:\d\d)?", r"\1:mm", text)  # as many columns in each place
    return "\n".join(line.rstrip() for line in text.strip().splitlines())


@pytest.mark.parametrize("since, left", [("0s", "8h"), ("38s", "7h59m22s"), ("1m", "7h59m"), ("1m2s", "7h58m58s"), ("59m59s", "7h1s")])
def test_a_screen_is_the_same_whenever_it_is_asked_for(since, left):
    queue = f"1  R  4  {since}/8h".ljust(20) + "13:04"
    assert same_at_any_time(f"{queue}\nsince 13:05 ({since} ago)\n等了（{since} 前）\nat 21:04 (in {left})\n（{left} 后）\nlimit: 8h, -/12h") == (
        "1  R  4  T/8h       13:mm\nsince 13:mm (T ago)\n等了（T 前）\nat 21:mm (in T)\n（T 后）\nlimit: 8h, -/12h")


def zone_where_it_is(hour, minute):
    """TZ of a place where the clock shows that now: so the screens are those of one day."""
    now = time.gmtime()
    ahead = (hour - now.tm_hour) * 60 + minute - now.tm_min
    return f"<XXX>{'-' if ahead >= 0 else ''}{abs(ahead) // 60}:{abs(ahead) % 60:02}"


class TwoPeople:
    """A machine that alice and bob share."""

    def __init__(self, place, language):
        self.place = Path(place)
        os.chmod(place, 0o755)
        shutil.copytree(BIN, self.place / "bin", symlinks=True)
        shutil.copytree(BIN.parent / "share", self.place / "share")
        self.work = self.place / "work"
        self.work.mkdir()
        keep = ("ASAN_OPTIONS", "UBSAN_OPTIONS")
        self.environment = {key: value for key, value in os.environ.items() if key in keep} | {
            "PATH": f"{self.place}/bin:{os.environ['PATH']}", "TZ": zone_where_it_is(13, 4), "LC_ALL": language,
            "NO_COLOR": "1", "HOME": str(self.work),
            "GFLOW_API__LISTEN": ""}  # not the one port all would listen on
        for name in ("passwd", "group"):
            shell = ":/:/bin/sh" if name == "passwd" else ""
            people = "".join(f"{who}:x:{uid}:{f'{uid}:' if shell else ''}{shell}\n" for who, uid in PEOPLE.items())
            (self.place / name).write_text(Path("/etc", name).read_text() + people)
        self.daemon = subprocess.Popen(
            ["unshare", "--mount", "bash", "-c", DAEMON, "bash", self.place / "bin", self.place],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=self.environment)

    def is_up(self):
        return self.daemon.stdout.readline() == b"up\n"

    def as_(self, who, *command):
        uid = str(PEOPLE[who])
        return ["nsenter", f"--mount=/proc/{self.daemon.pid}/ns/mnt", f"--wd={self.work}", "setpriv", f"--reuid={uid}", f"--regid={uid}",
                "--clear-groups", *command]

    def ok(self, who, command):
        ran = subprocess.run(self.as_(who, *command.split()), capture_output=True, env=self.environment, timeout=PATIENCE,
                             stdin=subprocess.DEVNULL, check=False)
        assert ran.returncode == 0, ran
        return ran.stdout.decode()

    def close(self):
        for who in PEOPLE:  # a job outlives its daemon
            subprocess.run(self.as_(who, "gcancel", "--me"), capture_output=True, env=self.environment, timeout=PATIENCE,
                           stdin=subprocess.DEVNULL, check=False)
        self.daemon.stdin.close()
        self.daemon.stdout.read()
        self.daemon.stderr.read()
        self.daemon.wait(PATIENCE)
        self.daemon.stdout.close()
        self.daemon.stderr.close()


@pytest.fixture
def shared(request):
    if os.geteuid() != 0:
        pytest.skip("only root can run a daemon for all users")
    place = tempfile.mkdtemp(prefix="gflow-readme-")
    machine = TwoPeople(place, LANGUAGES[request.param])
    try:
        if not machine.is_up():
            said = machine.daemon.stderr.read().decode()
            if "mount:" in said or "unshare:" in said:
                pytest.skip(f"no mount namespace here: {said}")
            raise AssertionError(said)
        yield SimpleNamespace(machine=machine, text=(TOP / request.param).read_text())
    finally:
        machine.close()
        shutil.rmtree(place, ignore_errors=True)


def shown(machine, command):
    with Terminal(machine, *machine.as_("alice", *command.split()), columns=80, rows=60, env={"LC_ALL": machine.environment["LC_ALL"]}) as terminal:
        if command == "gqueue -w":
            terminal.shows(" report ")
            text = terminal.screen.text()
            terminal.press("q")
        assert terminal.ends() == 0, terminal.screen.text()
        assert terminal.screen.wrapped == 0, terminal.screen.text()
        return text if command == "gqueue -w" else terminal.screen.text()


@pytest.mark.parametrize("shared", LANGUAGES, indirect=True)
def test_the_lines_of_the_readme_lead_to_its_screens(shared):
    machine = shared.machine
    for who, line in setting(shared.text):
        machine.ok(who, line)
    for job in (1, 2, 3, 5):
        state = json.loads(machine.ok("alice", f"gjob show {job} --json").splitlines()[0])["status"]
        assert state in ("Starting", "Running"), (job, state)
    expected = screens(shared.text)
    assert [command.split()[0] for command, _ in expected] == ["gqueue", "gqueue", "ginfo", "gjob", "gbatch", "gbatch"]
    for command, screen in expected:
        found = shown(machine, command)
        assert same_at_any_time(found) == same_at_any_time(screen), f"{command}\n{found}"
