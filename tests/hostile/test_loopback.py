# SPDX-License-Identifier: Apache-2.0
"""Three users on one port: who is who, whose allocation is whose, and who floods."""

import json
import socket
import subprocess

import pytest
from make_town import make_town
from town import CHECKOUT, UIDS

# Opens so many connections, says so, and keeps them until its input ends.
IDLE = """
import resource, socket, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (1024, 1024))
host, port, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
kept = [socket.create_connection((host, port)) for _ in range(count)]
print("open", flush=True)
sys.stdin.read()
"""


# Binds sockets to a port at which somebody will listen, and once told asks from each of them and resets the connection.
BEHIND = """
import json, socket, struct, sys
port, place = int(sys.argv[1]), sys.argv[2].rsplit('/', 1)[1].split(':')
bound = []
for _ in range(300):
    one = socket.socket()
    one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    one.bind(("127.0.0.1", port))
    bound.append(one)
print("bound", flush=True)
sys.stdin.readline()
body = json.dumps({"gpus": "0", "ttl_seconds": 4000}).encode()
for one in bound:
    try:
        one.connect((place[0], int(place[1])))
        one.send(b"POST /api/v1/gpu/allocate HTTP/1.1\\r\\nHost: localhost\\r\\nContent-Type: application/json\\r\\n"
                 b"Content-Length: %d\\r\\n\\r\\n" % len(body) + body)
        one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    except OSError:
        pass  # one of the same port that is still closing
    one.close()
"""


# Listens at a port of its own and says which; takes a connection at once, or has it wait in its queue, after or before it is there
# as the kernel sees it. Once told, says how many bytes came.
STRANGER = """
import select, socket, sys
way, listener = sys.argv[1], socket.socket()
if way == "deferred":
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_DEFER_ACCEPT, 60)
listener.bind(("127.0.0.1", 0))
listener.listen()
print(listener.getsockname()[1], flush=True)
taken, got = [], 0
while way == "taken" and sys.stdin not in (ready := select.select([listener, sys.stdin], [], [])[0]):
    taken.append(listener.accept()[0])
sys.stdin.read()
listener.setblocking(False)
try:
    while True:
        taken.append(listener.accept()[0])
except BlockingIOError:
    pass
for one in taken:
    one.setblocking(False)
    try:
        while piece := one.recv(65536):
            got += len(piece)
    except BlockingIOError:
        pass
print("got", got, "bytes", flush=True)
"""


@pytest.fixture(scope="module")
def served():
    made = make_town()
    try:
        made.up(env={"GFLOW_API__LISTEN": "127.0.0.1:0"})
        made.url = made.get("root", "/api/v1/daemon")["api_url"]
        yield made
    finally:
        made.close()


def curl(town, user, method, path, need=None, *more):
    """What a user gets: status and document."""
    body = [] if need is None else ["-H", "Content-Type: application/json", "-d", json.dumps(need)]
    out = town.ok(user, "curl", "-s", "-X", method, "-w", "\n%{http_code}", *body, *more, town.url + path)
    text, status = out.rsplit("\n", 1)
    return int(status), json.loads(text)


@pytest.fixture
def alices(served):
    """An allocation of alice's, of one GPU."""
    _, given = curl(served, "alice", "POST", "/api/v1/gpu/allocate", {"gpu_count": 1})
    assert given["success"], given
    yield given
    curl(served, "alice", "DELETE", f"/api/v1/gpu/allocations/{given['allocation_id']}")
    served.gone(given["allocation_id"])


def test_each_is_who_the_kernel_says(served):
    for user in ("alice", "bob", "mallory"):
        assert curl(served, user, "GET", "/api/v1/principal")[1]["name"] == user
    _, given = curl(served, "mallory", "POST", "/api/v1/gpu/allocate", {}, "-H", "X-Remote-User: alice")
    assert given["owner"] == "mallory", given
    curl(served, "mallory", "DELETE", f"/api/v1/gpu/allocations/{given['allocation_id']}")
    served.gone(given["allocation_id"])
    # Who shows something is not taken for somebody else because it is not understood.
    assert curl(served, "mallory", "GET", "/api/v1/principal", None, "-u", "alice:x")[0] == 401


def test_who_went_away_is_nobody(served):
    """A connection that is closed before it is accepted must not be taken for root's, as the kernel tells it."""
    out = served.ok("mallory", "python3", "-c", """
import socket, sys
host, port = sys.argv[1].rsplit('/', 1)[1].split(':')
for _ in range(200):
    one = socket.create_connection((host, int(port)))
    one.sendall(b'POST /api/v1/gpu/allocate HTTP/1.1\\r\\nHost: localhost\\r\\nContent-Type: application/json\\r\\n'
                b'Content-Length: 2\\r\\n\\r\\n{}')
    one.close()
""", served.url)
    assert out == ""
    jobs = served.get("root", "/api/v1/jobs?limit=1000")["jobs"]
    assert {job["user"]["name"] for job in jobs} <= {"alice", "bob", "mallory"}, jobs
    served.ok("root", "gcancel", "--user", "mallory")
    for job in jobs:
        served.gone(job["id"])


def test_who_listens_at_a_port_is_not_who_connects_from_it(served):
    """The kernel names whoever listens there for a connection that is no more."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    mallory = served.start("mallory", "python3", "-c", BEHIND, port, served.url, stdin=subprocess.PIPE)
    assert mallory.stdout.readline() == b"bound\n"
    listener = served.start("bob", "python3", "-c", f"""
import socket
one = socket.socket()
one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
one.bind(("127.0.0.1", {port}))
one.listen()
print("listens", flush=True)
input()
""", stdin=subprocess.PIPE)
    assert listener.stdout.readline() == b"listens\n"
    mallory.communicate(b"go\n")
    listener.communicate(b"done\n")
    jobs = served.get("root", "/api/v1/jobs?limit=1000&user=bob")["jobs"]
    assert jobs == [], [job["user"] for job in jobs]
    served.run("root", "gcancel", "--user", "mallory")


def test_root_submits_no_jobs_over_tcp(served):
    job = {"items": [{"spec": {"work_dir": "/"}, "payload": {"argv": ["true"]}}]}
    status, answer = curl(served, "root", "POST", "/api/v1/jobs", job)
    assert status == 403 and "socket" in answer["detail"], answer
    assert curl(served, "alice", "POST", "/api/v1/jobs", job)[0] == 201


def test_nobody_touches_anothers_allocation(served, alices):
    its = f"/api/v1/gpu/allocations/{alices['allocation_id']}"
    for method, path, need in [
        ("GET", its, None), ("DELETE", its, None), ("POST", its + "/renew", {"ttl_seconds": 1}),
        ("POST", "/api/v1/gpu/setup-pytorch", {"allocation_id": alices["allocation_id"]}),
    ]:
        status, answer = curl(served, "mallory", method, path, need)
        assert status == 403 and "alice" in answer["detail"], (method, path, answer)
    status, answer = curl(served, "mallory", "DELETE", f"/api/v1/gpu/cleanup/{alices['node_name']}")
    assert status == 404, answer
    assert curl(served, "mallory", "GET", "/api/v1/gpu/allocations")[1]["allocations"] == []
    assert served.job("root", alices["allocation_id"])["status"] == "Running"


def test_nobody_binds_to_a_process_of_another(served):
    job = served.submit("alice", "sh", "-c", "echo $$ >/run/shared/pid; exec sleep infinity")
    served.running(job)
    pid = int(served.ok("root", "sh", "-c", "until [ -s /run/shared/pid ]; do :; done; cat /run/shared/pid"))
    status, answer = curl(served, "mallory", "POST", "/api/v1/gpu/allocate", {"pid": pid})
    assert status == 403 and str(pid) in answer["detail"], answer
    served.ok("alice", "gcancel", job)
    served.gone(job)


def test_idle_connections_of_one_do_not_keep_another_out(served):
    host, port = served.url.removeprefix("http://").split(":")
    flood = served.start("mallory", "python3", "-c", IDLE, host, port, "600", stdin=subprocess.PIPE)
    assert flood.stdout.readline() == b"open\n"
    assert curl(served, "bob", "GET", "/api/v1/gpu/status")[0] == 200
    flood.communicate()


# The same of both clients of the Python package, each with a token.
CLIENT = """
import asyncio, sys
import gflow
url = sys.argv[1]
def asked():
    gflow.Client(url, token="gflow_" + "0" * 64, patience=0).machine()
async def asked_by_asyncio():
    async with gflow.AsyncClient(url, token="gflow_" + "0" * 64, patience=0) as client:
        await client.machine()
for ask in (asked, lambda: asyncio.run(asked_by_asyncio())):
    try:
        ask()
    except gflow.GflowError as error:
        print(type(error).__name__, error)
"""


@pytest.mark.parametrize("way", ["taken", "queued", "deferred"])
def test_the_python_package_sends_nothing_to_a_port_that_another_user_serves(served, way):
    package = {"PYTHONPATH": str(CHECKOUT / "python/src"), "PYTHONDONTWRITEBYTECODE": "1"}
    stranger = served.start("mallory", "python3", "-c", STRANGER, way, stdin=subprocess.PIPE)
    port = int(stranger.stdout.readline())
    told = served.ok("alice", "python3", "-c", CLIENT, f"http://127.0.0.1:{port}", env=package).splitlines()
    assert len(told) == 2, told
    for line in told:
        assert f"user {UIDS['mallory']} serves http://127.0.0.1:{port} and is neither root nor you" in line, told
    assert stranger.communicate()[0] == b"got 0 bytes\n"
    # gflowd is root's: it is asked, and says what it thinks of such a token.
    told = served.ok("alice", "python3", "-c", CLIENT, served.url, env=package).splitlines()
    assert len(told) == 2 and all("this token is not known" in line for line in told), told
