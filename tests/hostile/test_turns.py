# SPDX-License-Identifier: Apache-2.0
"""One user asks for large answers over as many connections as there may be: others get theirs in turn.

Not how long they wait, which is the machine's matter, but how much of the flood is answered while one other is. So that it
is there to be answered, whatever else the machine does, gflowd stands still while all of it is asked for, and the other last.
"""

import json
import statistics

from town import SOCKET, UIDS

TARGET = "/api/v1/openapi.json"  # counted when it is sent, and made in one piece
CONNECTIONS = 200
ROUNDS = 5

# Connects as two users, asks for both while gflowd stands still, and tells of each round how many answers mallory had when
# the last of bob's few was made; then every one of mallory's is read.
ROUND = r"""
import json, os, re, resource, signal, socket, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (1024, 1024))
path, target, count, rounds, gflowd = sys.argv[1], sys.argv[2], *map(int, sys.argv[3:6])
mallorys, bobs = map(int, sys.argv[6:])
FEW = 4
ASKED = f"GET {target} HTTP/1.1\r\nHost: gflow\r\nAccept-Encoding: gzip\r\n\r\n".encode()
COUNTS = b"GET /metrics HTTP/1.1\r\nHost: gflow\r\n\r\n"


def connect(uid):
    os.seteuid(uid)  # whose the connection is for good
    one = socket.socket(socket.AF_UNIX)
    one.connect(path)
    os.seteuid(0)
    return one, one.makefile("rb")


def read(lines):
    assert lines.readline().startswith(b"HTTP/1.1 200 ")
    length = 0
    while (line := lines.readline()) != b"\r\n":
        if line.lower().startswith(b"content-length:"):
            length = int(line.split(b":")[1])
    return lines.read(length)


def count_of(lines):
    text = read(lines).decode()
    return sum(int(float(n)) for n in re.findall(r'^gflow_http_requests_total\{[^}]*\} (\S+)$', text, re.MULTILINE))


def stop():
    os.kill(gflowd, signal.SIGSTOP)
    tasks = f"/proc/{gflowd}/task"
    while any(open(f"{tasks}/{task}/stat").read().rsplit(")", 1)[1].split()[0] != "T" for task in os.listdir(tasks)):
        pass  # it is told, and does so when each of its threads is next looked at


flood = [connect(mallorys) for _ in range(count)]
bob, bobs_lines = connect(bobs)
told = []
for _ in range(rounds):
    bob.sendall(COUNTS)
    before = count_of(bobs_lines)
    stop()
    try:
        for one, _ in flood:
            one.sendall(ASKED)
        bob.sendall(FEW * COUNTS)
    finally:
        os.kill(gflowd, signal.SIGCONT)
    counts = [count_of(bobs_lines) for _ in range(FEW)]
    told.append(counts[-1] - before - FEW)  # less the one before of bob's, and all but the last of this round's
    sizes = [len(read(lines)) for _, lines in flood]
    assert len(sizes) == count and min(sizes) > 1000, sizes
print(json.dumps(told))
"""


def test_large_answers_of_one_keep_nobody_waiting_for_all_of_them(town):
    gflowd = town.get("root", "/api/v1/daemon")["pid"]
    users = UIDS["mallory"], UIDS["bob"]
    told = json.loads(town.ok("root", "python3", "-c", ROUND, SOCKET, TARGET, CONNECTIONS, ROUNDS, gflowd, *users))
    assert statistics.median(told) < CONNECTIONS / 4, told
