# SPDX-License-Identifier: Apache-2.0
"""How a listing of several pages is fetched: the next page is made while one is shown. The daemon here is played, so that a
page comes when the test says so."""

import json
import signal
import socket
import subprocess

import pytest

JOBS = 200
NEXT = f"/api/v1/jobs?after={JOBS}"


class Asked:
    """A request and the connection it came over."""

    def __init__(self, connection):
        self.connection = connection
        head = b""
        while b"\r\n\r\n" not in head:
            head += connection.recv(1 << 16)
        self.target = head.split()[1].decode()

    def answer(self, document, status="200 OK", headers=""):
        body = json.dumps(document).encode()
        self.connection.sendall(f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n{headers}\r\n".encode() + body)
        self.connection.close()


class PlayedDaemon:
    def __init__(self, machine):
        self.path = str(machine.root / "played")
        self.environment = {**machine.environment, "GFLOW_SOCKET": self.path}
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.path)
        self.listener.listen()
        self.listener.settimeout(60)  # a request that never comes fails

    def start(self, *command):
        return subprocess.Popen(command, env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def asked(self):
        return Asked(self.listener.accept()[0])

    def asks_no_more(self):
        self.listener.setblocking(False)
        with pytest.raises(BlockingIOError):
            self.listener.accept()

    def give_first_page(self, link=NEXT):
        """More than a pipe that nobody reads takes."""
        self.asked().answer(page(1, JOBS, str(JOBS)), headers=f'Link: <{link}>; rel="next"\r\n')


def page(first, last, following=None):
    jobs = [{"id": number, "spec": {"name": "n" * 1000}} for number in range(first, last + 1)]
    return {"apiVersion": "gflow/v1", "kind": "JobPage", "jobs": jobs, "next": following,
            "next_after": following and int(following), "revision": 1}


def ids(lines):
    return [json.loads(line)["id"] for line in lines]


@pytest.fixture
def daemon(bare):
    return PlayedDaemon(bare)


def test_the_next_page_is_asked_for_before_one_is_shown(daemon):
    listing = daemon.start("gqueue", "-o", "jsonl")
    daemon.give_first_page()
    second = daemon.asked()  # nobody has read a line of the first
    assert second.target == NEXT
    second.answer(page(JOBS + 1, JOBS + 3))
    out, err = listing.communicate()
    assert (listing.returncode, ids(out.splitlines())) == (0, list(range(1, JOBS + 4))), err
    daemon.asks_no_more()


def test_a_daemon_that_says_no_link_is_asked_page_by_page(daemon):
    listing = daemon.start("gqueue", "-o", "csv", "-f", "JOBID", "--noheader")
    daemon.asked().answer(page(1, 3, "3"))
    second = daemon.asked()
    assert "after=3" in second.target
    second.answer(page(4, 5))
    out, err = listing.communicate()
    assert (listing.returncode, out.split()) == (0, ["1", "2", "3", "4", "5"]), err


def test_no_page_is_asked_for_that_is_not_wanted(daemon):
    listing = daemon.start("gqueue", "-o", "jsonl", "-n", str(JOBS))
    daemon.give_first_page()
    out, err = listing.communicate()
    assert (listing.returncode, ids(out.splitlines())) == (0, list(range(1, JOBS + 1))), err
    daemon.asks_no_more()


def test_a_page_nobody_read_in_time_is_asked_for_again(daemon):
    listing = daemon.start("gqueue", "-o", "jsonl")
    daemon.give_first_page()
    daemon.asked().connection.close()
    lines = [listing.stdout.readline() for _ in range(JOBS)]
    again = daemon.asked()
    assert again.target == NEXT
    again.answer(page(JOBS + 1, JOBS + 1))
    out, err = listing.communicate()
    assert (listing.returncode, ids([*lines, *out.splitlines()])) == (0, list(range(1, JOBS + 2))), err


@pytest.mark.parametrize("form, shown", [("jsonl", JOBS), ("table", 0)])
def test_a_page_that_fails_in_the_middle_is_an_error(daemon, form, shown):
    """What is shown as it comes stays; a table of a part of the jobs would look like one of all."""
    listing = daemon.start("gqueue", "-o", form)
    daemon.give_first_page()
    daemon.asked().answer({}, "500 Internal Server Error")
    out, err = listing.communicate()
    assert listing.returncode == 1 and "the daemon answered 500" in err, (listing.returncode, err)
    assert len(out.splitlines()) == shown


def test_ctrl_c_ends_a_listing_while_a_page_is_under_way(daemon):
    listing = daemon.start("gqueue", "-o", "jsonl")
    daemon.give_first_page()
    second = daemon.asked()
    lines = [listing.stdout.readline() for _ in range(JOBS)]
    listing.send_signal(signal.SIGINT)
    out, err = listing.communicate()
    assert (listing.returncode, out, ids(lines)) == (-signal.SIGINT, "", list(range(1, JOBS + 1))), err
    assert second.connection.recv(1) == b""
    daemon.asks_no_more()


def test_a_link_to_elsewhere_is_not_followed(daemon):
    listing = daemon.start("gqueue", "-o", "csv", "-f", "JOBID", "--noheader")
    daemon.give_first_page("https://elsewhere/api/v1/jobs?after=1")
    second = daemon.asked()
    assert second.target.startswith("/api/v1/jobs?") and f"after={JOBS}" in second.target
    second.answer(page(JOBS + 1, JOBS + 1))
    assert listing.communicate()[0].split()[-1] == str(JOBS + 1)
