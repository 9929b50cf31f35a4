# SPDX-License-Identifier: Apache-2.0
"""The REST API over TCP: the guide's curl lines to the letter, who may ask, and allocations."""

import ctypes
import html
import json
import os
import re
import signal
import socket
import subprocess
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import http_client
import pytest
from machine import PATIENCE, Machine

LOOPBACK = {"GFLOW_API__LISTEN": "127.0.0.1:0"}


@pytest.fixture
def served(request):
    """A machine whose API is at a port of its own."""
    marker = request.node.get_closest_marker("devices")
    made = Machine(*(marker.args if marker else ("sim:2xV100+2xA100",)))
    made.environment |= LOOPBACK
    try:
        made.up()
        made.url = json.loads(made.ok("gflowd", "status", "--json"))["api_url"]
        yield made
    finally:
        made.close()


def ask(machine, method, path, body=None, **headers):
    """What comes back: status and document."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(machine.url + path, data=data, method=method, headers=headers)
    if body is not None and "Content-Type" not in headers:
        request.add_header("Content-Type", "application/json")
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return answer.status, json.loads(answer.read() or b"null")
    except urllib.error.HTTPError as refused:
        return refused.code, json.loads(refused.read())


def submitted(machine, job_id):
    """The job once it is there."""
    while True:
        page = machine.get("/api/v1/jobs")
        if found := [job for job in page["jobs"] if job["id"] == job_id]:
            return found[0]
        machine.get(f"/api/v1/changes?revision={page['revision']}")


# The guide's lines as they are printed there, with what each answers on two V100s and two A100s.
GUIDE = [
    ('curl -X GET "http://localhost:8000/api/v1/gpu/status"',
     lambda d: d["utilization"] == {"gpu_utilization": 0, "gpu_memory_usage": 0} and d["total_nodes"] == 1
     and [(n["gpu_type"], n["available_gpus"], n["memory_per_gpu"]) for n in d["available_nodes"]] == [
         ("V100", 2, 32.0), ("A100", 2, 80.0)]),
    ('curl -X GET "http://localhost:8000/api/v1/gpu/nodes?gpu_type=V100&min_memory_gb=16"',
     lambda d: [n["gpu_type"] for n in d["available_nodes"]] == ["V100"]),
    ("""curl -X POST "http://localhost:8000/api/v1/gpu/validate" \\
  -H "Content-Type: application/json" \\
  -d '{
    "gpu_count": 1,
    "gpu_type": "A100",
    "memory_gb": 80.0
  }'""", lambda d: d["valid"] is True and d["available"] is True),
    ("""curl -X POST "http://localhost:8000/api/v1/gpu/allocate" \\
  -H "Content-Type: application/json" \\
  -d '{
    "gpu_count": 2,
    "gpu_type": "V100",
    "memory_gb": 32.0,
    "distributed_training": true,
    "mixed_precision": true
  }'""", lambda d: d["success"] is True and d["gpu_config"]["gpu_count"] == 2
     and d["gpu_config"]["gpu_type"] == "V100" and d["gpu_config"]["memory_gb"] == 32.0
     and d["gpu_config"]["distributed_training"] is True),
    # The V100s are taken now.
    ("""curl -X POST "http://localhost:8000/api/v1/gpu/setup-tensorflow" \\
  -H "Content-Type: application/json" \\
  -d '{
    "gpu_count": 1,
    "gpu_type": "V100",
    "memory_gb": 32.0,
    "gpu_memory_fraction": 0.9
  }'""", lambda d: d["success"] is False and "GPU" in d["error_message"]),
    ("""curl -X POST "http://localhost:8000/api/v1/gpu/setup-pytorch" \\
  -H "Content-Type: application/json" \\
  -d '{
    "gpu_count": 2,
    "gpu_type": "A100",
    "memory_gb": 80.0,
    "distributed_training": true
  }'""", lambda d: d["success"] is True and d["pytorch_config"]["devices"] == ["cuda:0", "cuda:1"]
     and d["pytorch_config"]["world_size"] == 2 and d["gpu_config"]["environment"]["MASTER_PORT"].isdigit()),
    ('curl -X GET "http://localhost:8000/api/v1/gpu/health"', lambda d: d["status"] == "healthy"),
    ('curl -X GET "http://localhost:8000/api/v1/gpu/monitoring"',
     lambda d: [g["available"] for g in d["nodes"][0]["gpus"]] == [False] * 4),
]


def test_every_line_of_the_guide_is_here():
    document = Path(__file__).parents[1] / "fixtures/documents/gpu_resource_manager.md"
    asked = [one for one in re.findall(r"(?ms)^```bash\n(.*?)\n```", document.read_text()) if one.startswith("curl")]
    assert sorted(asked) == sorted(line for line, _ in GUIDE)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: the port of the guide in a network of the test's own")
@pytest.mark.devices("sim:2xV100+2xA100")
def test_the_lines_of_the_guide(bare):
    network = subprocess.Popen(  # noqa: S603
        ["unshare", "--net", "sh", "-c", "ip link set lo up && echo up && exec sleep infinity"],
        stdout=subprocess.PIPE,
    )
    try:
        assert network.stdout.readline() == b"up\n"
        inside = ["nsenter", f"--net=/proc/{network.pid}/ns/net"]
        bare.environment.pop("GFLOW_API__LISTEN")
        bare.ok(*inside, "gflowd", "up", "--devices", bare.devices)
        for line, is_right in GUIDE:
            answer = json.loads(bare.ok(*inside, "bash", "-c", line))
            assert is_right(answer), (line, answer)
    finally:
        network.kill()
        network.wait()


def test_an_allocation_is_given_and_given_back(served):
    status, given = ask(served, "POST", "/api/v1/gpu/allocate", {"gpu_count": 2, "gpu_type": "A100"})
    assert (status, given["success"]) == (200, True), given
    devices = given["gpu_config"]["devices"]
    assert [(d["index"], d["memory_gb"]) for d in devices] == [(2, 80), (3, 80)]
    assert given["gpu_config"]["environment"]["CUDA_VISIBLE_DEVICES"] == "2,3"
    assert given["expires_at"] is not None
    # What is for the framework alone is told where it was asked for.
    allocation = f"/api/v1/gpu/allocations/{given['allocation_id']}"
    held = [ask(served, "GET", allocation)[1], *ask(served, "GET", "/api/v1/gpu/allocations")[1]["allocations"],
            ask(served, "POST", allocation + "/renew", {"ttl_seconds": 3600})[1]]
    for one in held:
        assert set(given["gpu_config"]) - set(one["gpu_config"]) == {
            "distributed_training", "mixed_precision", "gpu_memory_fraction"}, one
    job = served.job(given["allocation_id"])
    assert (job["status"], job["spec"]["allocation"], job["gpu_indices"]) == ("Running", True, [2, 3])
    # Nothing else gets them meanwhile, and what is free is told.
    _, no = ask(served, "POST", "/api/v1/gpu/allocate", {"gpu_count": 1, "gpu_type": "A100"})
    assert no["success"] is False and "A100" in no["error_message"], no
    assert ask(served, "GET", "/api/v1/gpu/nodes?gpu_type=A100")[1]["available_nodes"] == []
    node = given["node_name"]
    status, wrong = ask(served, "DELETE", f"/api/v1/gpu/cleanup/{node}?gpu_count=3")
    assert status == 404 and "of 3 GPUs" in wrong["detail"], wrong
    status, back = ask(served, "DELETE", f"/api/v1/gpu/cleanup/{node}?gpu_count=2")
    assert (status, back["released"], back["gpu_count"]) == (200, [given["allocation_id"]], 2), back
    assert served.wait(given["allocation_id"])[0]["status"] == "Cancelled"
    assert ask(served, "GET", "/api/v1/gpu/nodes?gpu_type=A100")[1]["available_nodes"][0]["available_gpus"] == 2


@contextmanager
def debugged(pid):
    """Held by a debugger: what is told to end or to go on is heard after this."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = [ctypes.c_long] * 4

    def call(request):
        if libc.ptrace(request, pid, 0, 0) != 0:
            raise OSError(ctypes.get_errno(), f"ptrace {request:#x} of {pid}")

    call(0x4206)  # PTRACE_SEIZE
    call(0x4207)  # PTRACE_INTERRUPT
    os.waitpid(pid, 0x40000000)  # __WALL
    try:
        yield
    finally:
        call(17)  # PTRACE_DETACH


def test_who_gave_gpus_back_is_answered_once_they_are_free(served):
    need = {"gpu_count": 2, "gpu_type": "A100"}
    _, given = ask(served, "POST", "/api/v1/gpu/allocate", need)
    job = given["allocation_id"]
    with open(f"/proc/{served.job(job)['pid']}/stat") as stat:
        supervisor = int(stat.read().rsplit(")", 1)[1].split()[1])
    with ThreadPoolExecutor() as threads:
        with debugged(supervisor):
            seen = served.get("/api/v1/jobs")["revision"]
            back = threads.submit(ask, served, "DELETE", f"/api/v1/gpu/allocations/{job}")
            served.get(f"/api/v1/changes?revision={seen}&job={job}")  # it was told to end
            status, none = ask(served, "DELETE", f"/api/v1/gpu/cleanup/{given['node_name']}")
            assert status == 404 and "no allocation on node" in none["detail"], none
            assert not back.done()
        status, answer = back.result()
    assert (status, answer["jobs"]) == (200, [job])
    assert ask(served, "POST", "/api/v1/gpu/allocate", need)[1]["success"] is True


def at_once(machine, *asked):
    """The answers to requests that are all there before gflowd looks at any of them."""
    daemon = machine.daemon_pid()
    host, port = machine.url.removeprefix("http://").split(":")
    clients = [socket.create_connection((host, int(port)), PATIENCE) for _ in asked]
    try:
        for client in clients:  # each is known, and waits for no more than its request
            client.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert client.recv(4096).startswith(b"HTTP/1.1 200")
        os.kill(daemon, signal.SIGSTOP)
        for client, (method, path, body, headers) in zip(clients, asked, strict=True):
            text = json.dumps(body) if body else ""
            lines = [f"{method} {path} HTTP/1.1", "Host: localhost", "Connection: close", "Content-Type: application/json",
                     f"Content-Length: {len(text)}", *headers]
            client.sendall(("\r\n".join(lines) + "\r\n\r\n" + text).encode())
        os.kill(daemon, signal.SIGCONT)
        answers = [b"".join(iter(lambda client=client: client.recv(65536), b"")).decode() for client in clients]
        return [(int(answer.split()[1]), json.loads(answer.partition("\r\n\r\n")[2])) for answer in answers]
    finally:
        os.kill(daemon, signal.SIGCONT)
        for client in clients:
            client.close()


def test_two_who_clean_up_at_once_give_back_two(served):
    given = [ask(served, "POST", "/api/v1/gpu/allocate", {})[1] for _ in range(2)]
    back = at_once(served, *[("DELETE", f"/api/v1/gpu/cleanup/{given[0]['node_name']}?gpu_count=1", None, [])] * 2)
    assert sorted((status, *answer["released"]) for status, answer in back) == [(200, one["allocation_id"]) for one in given]
    assert ask(served, "GET", "/api/v1/gpu/allocations")[1]["allocations"] == []


@pytest.mark.parametrize("other", [("PATCH", {"priority": 4}), ("DELETE", None)])
def test_of_two_who_change_one_job_at_once_one_is_told_that_it_changed(served, other):
    path = f"/api/v1/jobs/{served.submit('--hold', 'true')}"
    with urllib.request.urlopen(served.url + path, timeout=PATIENCE) as answer:
        match = [f"If-Match: {answer.headers['ETag']}"]
    method, body = other
    answers = at_once(served, ("PATCH", path, {"priority": 3}, match), (method, path, body, match))
    assert sorted(status for status, _ in answers) == [200, 412], answers


def test_an_allocation_can_wait_in_the_queue(served):
    _, first = ask(served, "POST", "/api/v1/gpu/allocate", {"gpu_count": 2, "gpu_type": "V100"})
    waits = http_client.ask(served, "POST", "/api/v1/gpu/allocate",
                            json.dumps({"gpu_count": 1, "gpu_type": "V100", "wait": True}))
    second = waits.document
    assert (waits.status, second["success"], second["state"]) == (202, False, "Queued"), second
    assert waits.headers["Location"] == f"/api/v1/gpu/allocations/{second['allocation_id']}"
    assert second["error_message"], second
    status, never = ask(served, "POST", "/api/v1/gpu/allocate", {"gpu_count": 5, "wait": True})
    assert (status, never["code"]) == (422, "infeasible"), never
    ask(served, "DELETE", f"/api/v1/gpu/allocations/{first['allocation_id']}")
    served.running(second["allocation_id"])
    status, now = ask(served, "GET", f"/api/v1/gpu/allocations/{second['allocation_id']}")
    assert (status, now["success"]) == (200, True), now
    _, mine = ask(served, "GET", "/api/v1/gpu/allocations")
    assert [a["allocation_id"] for a in mine["allocations"]] == [second["allocation_id"]]


@pytest.mark.parametrize("more", [{"gpu_count": 2}, {"gpu_type": "V100"}, {"memory_gb": 1}, {"compute_ratio": 0.5}])
def test_what_is_said_twice_is_refused(served, more):
    status, wrong = ask(served, "POST", "/api/v1/gpu/allocate", {"gpus": "1"} | more)
    assert status == 400 and "/gpus: specifies the whole request" in wrong["detail"], wrong
    assert ask(served, "GET", "/api/v1/gpu/allocations")[1]["allocations"] == []


def test_a_whole_number_may_be_written_as_any_number(served):
    """As the schema has it; what knows one kind of numbers only writes 2.0."""
    _, given = ask(served, "POST", "/api/v1/gpu/allocate", {"gpu_count": 2.0, "ttl_seconds": 6e2})
    assert given["success"] and given["gpu_config"]["gpu_count"] == 2, given
    status, wrong = ask(served, "POST", "/api/v1/gpu/allocate", {"gpu_count": 1.5})
    assert status == 400 and wrong["detail"] == "/gpu_count: must be a whole number from 1 to 1024, not 1.5", wrong


def test_what_is_nested_too_deep_is_refused(served):
    deep = []
    for _ in range(40):
        deep = [deep]
    status, wrong = ask(served, "POST", "/api/v1/gpu/allocate", {"gpus": deep})
    assert status == 400 and "nested more than 32 deep" in wrong["detail"], wrong


def test_null_is_as_good_as_not_there(served):
    """As programs write what they have no value for."""
    need = dict.fromkeys(["gpu_count", "gpu_type", "memory_gb", "compute_ratio", "distributed_training", "mixed_precision",
                          "gpu_memory_fraction", "gpus", "wait", "ttl_seconds", "pid", "wait_pid", "allocation_id"])
    _, without = ask(served, "POST", "/api/v1/gpu/validate", {})
    status, told = ask(served, "POST", "/api/v1/gpu/validate", need)
    assert status == 200 and told == without and told["valid"], told
    _, given = ask(served, "POST", "/api/v1/gpu/allocate", need)
    assert given["success"] and given["gpu_config"]["gpu_memory_fraction"] == 0.9, given


def test_the_same_request_again_is_the_same_allocation(served):
    need = {"gpu_count": 1, "gpu_type": "V100"}
    key = {"Idempotency-Key": "once"}
    _, first = ask(served, "POST", "/api/v1/gpu/allocate", need, **key)
    _, again = ask(served, "POST", "/api/v1/gpu/allocate", need, **key)
    assert first["success"] and again == first
    status, other = ask(served, "POST", "/api/v1/gpu/allocate", need | {"gpu_count": 2}, **key)
    assert status == 422, other
    assert len(served.get("/api/v1/jobs")["jobs"]) == 1


def test_a_key_is_of_what_was_asked_for_with_it(served):
    """Not only the same body, but at the same route: what comes back would not be what is asked for."""
    need = {"gpu_count": 1, "gpu_type": "V100"}
    routes = ["/api/v1/gpu/allocate", "/api/v1/gpu/setup-pytorch", "/api/v1/gpu/setup-tensorflow"]
    given = {}
    for route in routes:
        key = {"Idempotency-Key": f"of {route}"}
        status, given[route] = ask(served, "POST", route, need, **key)
        assert status == 200 and given[route]["success"], given[route]
        for other in routes:
            status, answer = ask(served, "POST", other, need, **key)
            if other == route:
                assert answer == given[route]
            else:
                assert (status, answer["code"]) == (422, "key_reused"), answer
                assert "Idempotency-Key" in answer["detail"], answer
        ask(served, "DELETE", f"/api/v1/gpu/allocations/{given[route]['allocation_id']}")


def test_the_processes_of_one_training_are_told_of_one_place_to_meet(served):
    """Each may ask for itself: with the key, with the number of the allocation, of a gflowd that was killed since."""
    need = {"gpu_count": 2, "gpu_type": "V100", "distributed_training": True}

    def place(framework, more=None, **headers):
        status, told = ask(served, "POST", f"/api/v1/gpu/setup-{framework}", need | (more or {}), **headers)
        assert status == 200 and told["success"], told
        environment = told["gpu_config"]["environment"]
        return told["allocation_id"], environment["MASTER_ADDR"], environment["MASTER_PORT"]

    key = {"Idempotency-Key": "ranks"}
    first = place("pytorch", **key)
    mine = {"allocation_id": first[0]}
    assert [place("pytorch", **key), place("pytorch", mine), place("tensorflow", mine)] == [first] * 3
    served.kill_daemon()
    served.up()
    served.url = json.loads(served.ok("gflowd", "status", "--json"))["api_url"]
    assert [place("pytorch", **key), place("pytorch", mine)] == [first] * 2
    other = place("pytorch", {"gpu_type": "A100"})
    assert other[0] != first[0] and other[2] != first[2]


def test_a_client_that_goes_away_before_its_answer_holds_nothing(served):
    host, port = served.url.removeprefix("http://").split(":")
    body = b'{"gpus": "0"}'
    jobs = []
    while len(jobs) < 5:  # of one that is gone before it was looked at it is not known who it is, and nothing is done
        with socket.create_connection((host, int(port))) as client:
            client.sendall(b"POST /api/v1/gpu/allocate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                           b"Content-Length: %d\r\n\r\n" % len(body) + body)
        jobs = served.get("/api/v1/jobs")["jobs"]
    assert {job["status"] for job in served.wait(*[job["id"] for job in jobs])} == {"Cancelled"}


def test_an_allocation_is_not_run_again(served):
    _, given = ask(served, "POST", "/api/v1/gpu/allocate", {})
    for words in (["--preemptible=requeue"], ["--preemptible=suspend"], ["--max-retries", "2"], ["--requeue", "yes"]):
        ran = served.run("gjob", "update", str(given["allocation_id"]), *words)
        assert ran.code != 0 and "is an allocation" in ran.err, (words, ran)
    served.ok("gjob", "update", str(given["allocation_id"]), "--priority", "5")


def test_what_is_no_process_is_refused(served):
    program = subprocess.Popen(
        ["python3", "-c", "import threading; t = threading.Thread(target=input); t.start(); print(t.native_id, flush=True)"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    status, answer = ask(served, "POST", "/api/v1/gpu/allocate", {"pid": int(program.stdout.readline())})
    program.communicate(b"\n")
    assert status == 404 and "/pid" in answer["detail"], answer


def test_the_answer_to_head_is_a_head(served):
    with socket.create_connection(served.url.removeprefix("http://").split(":")) as client:
        for _ in range(2):
            client.sendall(b"HEAD /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            head = b""
            while not head.endswith(b"\r\n\r\n"):
                head += client.recv(1)
            assert head.startswith(b"HTTP/1.1 200 ") and b"Content-Length: 3\r\n" in head, head
        client.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n")
        assert client.recv(100).startswith(b"HTTP/1.1 400 ")
    with socket.create_connection(served.url.removeprefix("http://").split(":")) as client:
        client.sendall(b"GET /healthz HTTP/1.1\r\n\r\n")
        assert client.recv(100).startswith(b"HTTP/1.1 400 ")


SOLD_WITH = {"T4": 16, "V100": 32, "A100": 80, "H100": 80, "RTX3090": 24, "RTX4090": 24, "A6000": 48, "A40": 48}


@pytest.mark.devices("sim:" + "+".join(f"1x{model}" for model in SOLD_WITH))
def test_what_a_model_is_sold_with_is_all_of_it(served):
    """Drivers report a little less: 15 GB of a T4. The document's table has the sizes on the box."""
    for model, gb in SOLD_WITH.items():
        need = {"gpu_type": model, "memory_gb": gb}
        assert ask(served, "POST", "/api/v1/gpu/validate", need)[1]["valid"], model
        nodes = ask(served, "GET", f"/api/v1/gpu/nodes?gpu_type={model}&min_memory_gb={gb}")[1]["available_nodes"]
        assert [node["gpu_type"] for node in nodes] == [model], nodes
        if model in ("RTX3090", "RTX4090", "A6000"):  # a screen has some of it: not now
            continue
        status, told = ask(served, "POST", "/api/v1/gpu/allocate", need)
        assert told["success"] and told["gpu_config"]["gpu_type"] == model and told["gpu_config"]["memory_gb"] <= gb, told
        again = need | {"allocation_id": told["allocation_id"]}
        assert ask(served, "POST", "/api/v1/gpu/setup-pytorch", again)[0] == 200
        assert not ask(served, "POST", "/api/v1/gpu/validate", need | {"memory_gb": gb + 1})[1]["valid"], model
    # Of any model it is what is said.
    need = {"memory_gb": 80.5}
    assert not ask(served, "POST", "/api/v1/gpu/validate", need)[1]["valid"]


def test_a_share_of_a_gpu_is_set_up_as_one(served):
    need = {"gpus": "8G,0.5(V100)", "gpu_memory_fraction": 0.5}
    _, torch = ask(served, "POST", "/api/v1/gpu/setup-pytorch", need)
    assert torch["gpu_config"]["devices"][0] | {"uuid": ""} == {
        "index": 0, "uuid": "", "gpu_type": "V100", "compute_ratio": 0.5, "memory_gb": 8}
    assert torch["pytorch_config"]["memory_fraction"] == 0.125  # of the 32 GB of the device
    _, flow = ask(served, "POST", "/api/v1/gpu/setup-tensorflow", need | {"allocation_id": torch["allocation_id"]})
    assert flow["allocation_id"] == torch["allocation_id"]
    assert (flow["tensorflow_config"]["memory_limit_mb"], flow["tensorflow_config"]["memory_growth"]) == (4096, False)
    # What a framework was told is nothing of the allocation.
    _, shown = ask(served, "GET", f"/api/v1/gpu/allocations/{torch['allocation_id']}")
    told = {"distributed_training", "mixed_precision", "gpu_memory_fraction"}
    assert set(shown["gpu_config"]) == set(torch["gpu_config"]) - told and told < set(torch["gpu_config"]), shown
    assert "pytorch_config" not in shown and shown["gpu_config"]["devices"] == torch["gpu_config"]["devices"]
    _, listed = ask(served, "GET", "/api/v1/gpu/allocations")
    assert [one["gpu_config"] for one in listed["allocations"]] == [shown["gpu_config"]], listed


def test_an_allocation_ends_with_the_process_it_is_for(served):
    program = subprocess.Popen(["sleep", "infinity"])
    try:
        _, given = ask(served, "POST", "/api/v1/gpu/allocate", {"pid": program.pid})
        assert given["success"] and given["expires_at"] is None, given
        served.ok("gflowd", "restart")
        assert served.job(given["allocation_id"])["status"] == "Running"
    finally:
        program.kill()
        program.wait()
    assert served.wait(given["allocation_id"])[0]["status"] == "Finished"


def test_an_allocation_ends_in_its_time_and_can_be_renewed(served):
    _, given = ask(served, "POST", "/api/v1/gpu/allocate", {"ttl_seconds": 3600})
    path = f"/api/v1/gpu/allocations/{given['allocation_id']}"
    status, renewed = ask(served, "POST", path + "/renew", {"ttl_seconds": 7200})
    assert status == 200 and renewed["expires_at"] > given["expires_at"], renewed
    status, renewed = ask(served, "POST", path + "/renew", {"ttl_seconds": 1})
    assert status == 200, renewed
    assert served.wait(given["allocation_id"])[0]["status"] == "Timeout"


def test_an_allocation_is_renewed_for_as_long_as_any_may_have(served):
    _, given = ask(served, "POST", "/api/v1/gpu/allocate", {"ttl_seconds": 3600})
    longest = 10 * 365 * 86400  # as the description of the API has it
    status, renewed = ask(served, "POST", f"/api/v1/gpu/allocations/{given['allocation_id']}/renew", {"ttl_seconds": longest})
    assert status == 200 and renewed["expires_at"] > given["expires_at"], renewed


@pytest.mark.parametrize("more", [
    {"wait": True}, {"ttl_seconds": 5}, {"pid": os.getpid()}, {"wait_pid": os.getpid()},
    {"gpu_count": 3}, {"gpu_type": "A100"}, {"memory_gb": 80}, {"compute_ratio": 0.5}, {"gpus": "1(A100)"}])
@pytest.mark.parametrize("what", ["allocate", "setup-pytorch", "setup-tensorflow"])
def test_an_allocation_there_is_is_not_made_another(served, what, more):
    need = {"gpu_count": 2, "gpu_type": "v100"}
    _, given = ask(served, "POST", "/api/v1/gpu/allocate", need)
    mine = {"allocation_id": given["allocation_id"]}
    status, told = ask(served, "POST", f"/api/v1/gpu/{what}", mine | more)
    assert (status, told["code"]) == (400, "usage"), told
    config = {name: given["gpu_config"][name] for name in ("gpu_count", "gpu_type", "memory_gb", "compute_ratio")}
    for same in ({}, need, config, {"gpus": "2(V100)"}, {"distributed_training": True}):
        status, told = ask(served, "POST", f"/api/v1/gpu/{what}", mine | same)
        assert (status, told["allocation_id"]) == (200, given["allocation_id"]), told


@pytest.mark.parametrize(("need", "says"), [
    ({"gpu_count": 0}, "/gpu_count"),
    ({"gpu_type": "Voodoo2"}, "VOODOO2"),
    ({"gpu_type": "V100,A100"}, "'V100|A100'"),
    ({"compute_ratio": 1.5}, "/compute_ratio"),
    ({"compute_ratio": 1e-9}, "from 0.0001 to 1"),
    ({"gpu_memory_fraction": 0}, "/gpu_memory_fraction"),
    ({"memory_gb": 1e-6}, "less than 1 MiB"),
    ({"memory_gb": -1}, "/memory_gb"),
    ({"gpu_cuont": 1}, "did you mean 'gpu_count'"),
    ({"pid": 2**30}, "/pid"),
    ({"gpu_count": 64}, "64"),
])
def test_a_need_that_makes_no_sense_is_told(served, need, says):
    status, answer = ask(served, "POST", "/api/v1/gpu/allocate", need)
    told = answer["detail"] if status != 200 else answer["error_message"]
    assert says in told and not answer.get("success"), answer
    assert served.get("/api/v1/jobs")["jobs"] == []


def test_what_never_fits_is_not_valid_and_what_is_taken_is_not_available(served):
    _, never = ask(served, "POST", "/api/v1/gpu/validate", {"gpu_type": "V100", "memory_gb": 64})
    assert (never["valid"], never["available"]) == (False, False) and never["error_message"], never
    ask(served, "POST", "/api/v1/gpu/allocate", {"gpu_count": 2, "gpu_type": "V100"})
    _, later = ask(served, "POST", "/api/v1/gpu/validate", {"gpu_type": "V100", "memory_gb": 32})
    assert (later["valid"], later["available"]) == (True, False) and later["error_message"], later


def test_health_tells_what_nothing_starts_on(served):
    def health():
        status, told = ask(served, "GET", "/api/v1/gpu/health")
        assert status == 200, told
        return told["status"], told["usable_gpus"], told["problems"]

    def troubles():
        gpus = ask(served, "GET", "/api/v1/gpu/monitoring")[1]["nodes"][0]["gpus"]
        assert [gpu["available"] for gpu in gpus] == [gpu["trouble"] is None for gpu in gpus]
        return [gpu["trouble"] for gpu in gpus]

    node = ask(served, "GET", "/api/v1/gpu/status")[1]["available_nodes"][0]["node_name"]
    assert health() == ("healthy", 4, [])
    served.ok("gctl", "drain", "gpu", "1", "--reason", "its fan is loud")
    assert health() == ("degraded", 3, [f"{node}: GPU 1: drained: its fan is loud"])
    assert troubles() == [None, "drained: its fan is loud", None, None]
    served.ok("gctl", "drain", "node", "--reason", "it is moved")
    assert health() == ("degraded", 0, [f"{node}: drained: it is moved"])
    assert troubles() == ["drained: it is moved", "drained: its fan is loud", *["drained: it is moved"] * 2]
    served.ok("gctl", "resume", "node")
    served.ok("gctl", "resume", "gpu", "1")
    assert health() == ("healthy", 4, [])
    assert troubles() == [None] * 4


def lines_of_the_page(page):
    return [html.unescape(line) for line in re.findall("(?s)<pre>(.*?)</pre>", page)]


def test_the_page_types_what_leads_to_where_it_was_asked(served):
    """Over TCP by the name it was asked by, and over the socket; with something in place of each {id}."""
    port = served.url.rpartition(":")[2]
    for url in (served.url, f"http://localhost:{port}"):
        with urllib.request.urlopen(url + "/docs", timeout=PATIENCE) as answer:
            lines = lines_of_the_page(answer.read().decode())
        assert len(lines) > 50 and all(f" '{url}/" in line and "{" not in line.split("\n")[0] for line in lines), lines
        assert served.ok("bash", "-c", next(line for line in lines if "/api/v1/nodes?" in line)).startswith("{")
    lines = lines_of_the_page(http_client.ask(served, "GET", "/docs").body.decode())
    assert all(f" --unix-socket {served.socket} 'http://localhost/" in line for line in lines), lines
    assert served.ok("bash", "-c", next(line for line in lines if "/api/v1/nodes?" in line)).startswith("{")
    segments = [parameter for methods in served.get("/api/v1/openapi.json")["paths"].values() for operation in methods.values()
                for parameter in operation["parameters"] if parameter.get("in") == "path"]
    assert segments and all(parameter["example"] for parameter in segments), segments


def test_a_web_page_gets_nothing(served):
    for headers, code in [
        ({"Host": "gflow.evil.example"}, 421),
        ({"Origin": "http://localhost:8000"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Content-Type": "text/plain"}, 415),
    ]:
        status, answer = ask(served, "POST", "/api/v1/gpu/allocate", {}, **headers)
        assert status == code and answer["detail"], (headers, answer)
    assert served.get("/api/v1/jobs")["jobs"] == []


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to ask as somebody else")
def test_over_tcp_it_is_known_who_asks_and_nobody_is_more_than_a_user(served):
    _, me = ask(served, "GET", "/api/v1/principal")
    assert (me["name"], me["role"], me["known_by"]) == ("root", "user", "loopback connection"), me
    assert ask(served, "POST", "/api/v1/daemon/stop", {})[0] == 403
    other = served.run("setpriv", "--reuid=65534", "--clear-groups", "curl", "-s", f"{served.url}/api/v1/gpu/status")
    assert json.loads(other.out)["status"] == 403, other


def test_a_port_that_is_taken_is_told_and_keeps_nothing_from_running(served, bare):
    taken = served.url.removeprefix("http://")
    bare.environment["GFLOW_API__LISTEN"] = taken
    ran = bare.run("gflowd", "up", "--devices", bare.devices)
    assert ran.code == 0 and taken in ran.err and "[api] listen" in ran.err, ran
    assert bare.wait(bare.submit("true"))[0]["status"] == "Finished"


@pytest.mark.parametrize("address", ["0.0.0.0:8000", "192.168.1.2:8000", "127.0.0.1", "localhost:http", "[::]:80"])
def test_an_address_others_reach_is_refused(bare, address):
    ran = bare.run("gflowd", "up", "--devices", bare.devices, env={"GFLOW_API__LISTEN": address})
    assert ran.code == 2 and address in ran.err, ran


def test_galloc_runs_a_command_on_what_it_holds(served):
    out = served.ok("galloc", "--gpus", "2(V100)", "sh", "-c", "echo $CUDA_VISIBLE_DEVICES; gqueue --noheader -f NAME,ST")
    visible, row = out.splitlines()
    assert visible == "0,1" and row.split() == ["allocation", "R"], out
    assert served.wait(1)[0]["status"] in ("Cancelled", "Finished")
    assert served.run("galloc", "sh", "-c", "exit 7").code == 7
    assert served.run("galloc", "no-such-program").code == 127
    assert all(job["status"] != "Running" for job in served.wait(2, 3))


def test_galloc_waits_its_turn_or_does_not(served):
    first = served.submit("--gpus", "4", "sleep", "1000")
    served.running(first)
    refused = served.run("galloc", "--immediate", "true")
    assert refused.code not in (0, 2) and "GPU" in refused.err, refused
    waiting = subprocess.Popen(
        ["galloc", "echo", "mine"], env=served.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=served.work)
    assert submitted(served, 2)["spec"]["allocation"]
    served.ok("gcancel", str(first))
    out, _ = waiting.communicate(timeout=PATIENCE)
    assert (waiting.returncode, out) == (0, b"mine\n")


def test_galloc_that_is_interrupted_leaves_nothing(served):
    first = served.submit("--gpus", "4", "sleep", "1000")
    served.running(first)
    waiting = subprocess.Popen(["galloc", "true"], env=served.environment, cwd=served.work, stderr=subprocess.DEVNULL)
    assert submitted(served, 2)["status"] == "Queued"
    waiting.send_signal(signal.SIGINT)
    assert waiting.wait(timeout=PATIENCE) == 128 + signal.SIGINT
    assert served.wait(2)[0]["status"] == "Cancelled"


@pytest.mark.parametrize("number", [signal.SIGUSR1, signal.SIGUSR2, signal.SIGTERM])
def test_a_signal_at_galloc_is_the_programs(served, number):
    """As one that asks for a checkpoint: galloc used to die of it, and left the program behind."""
    words = ["galloc", "bash", "-c", f"trap 'exit 3' {number.name}; echo ready; while :; do sleep infinity & wait; done"]
    with subprocess.Popen(words, env=served.environment, cwd=served.work, text=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as holding:
        assert holding.stdout.readline() == "ready\n"
        holding.send_signal(number)
        assert holding.wait(timeout=PATIENCE) == 3


def test_what_galloc_runs_keeps_its_gpus_when_galloc_is_killed(served):
    holding = subprocess.Popen(
        ["galloc", "sh", "-c", "echo $$; exec sleep infinity"], env=served.environment, cwd=served.work,
        stdout=subprocess.PIPE)
    program = int(holding.stdout.readline())
    holding.kill()
    holding.wait()
    assert served.job(1)["status"] == "Running"
    os.kill(program, signal.SIGKILL)
    assert served.wait(1)[0]["status"] == "Finished"


def test_what_galloc_runs_ends_with_its_allocation(served):
    holding = subprocess.Popen(
        ["galloc", "sh", "-c", "echo up; exec sleep infinity"], env=served.environment, cwd=served.work,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert holding.stdout.readline() == b"up\n"
    served.ok("gcancel", "1")
    _, err = holding.communicate(timeout=PATIENCE)
    assert holding.returncode == 128 + signal.SIGTERM and b"allocation 1 has ended" in err, err


def test_all_that_galloc_runs_ends_with_its_allocation(served):
    holding = subprocess.Popen(
        ["galloc", "sh", "-c", "setsid sleep 3141 & echo up; wait; echo went on"], env=served.environment,
        cwd=served.work, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert holding.stdout.readline() == b"up\n"
    served.ok("gcancel", "1")
    out, _ = holding.communicate(timeout=PATIENCE)  # its output is closed when the last that has it is gone
    assert (holding.returncode, out) == (128 + signal.SIGTERM, b"")


def test_galloc_env_that_cannot_be_told_holds_nothing(served):
    ran = served.run("galloc --env >/dev/full", shell=True)
    assert ran.code == 1 and "released" in ran.err, ran
    # Either way it is over: the shell it was for ends at the same time.
    assert served.wait(1)[0]["status"] in ("Cancelled", "Finished")


def test_galloc_env_in_a_subshell_is_told_for_whom(served):
    out = served.bash('(eval "$(galloc --env --pid $$ | cat)"; echo $CUDA_VISIBLE_DEVICES; gqueue --noheader -f ST)')
    assert out.split() == ["0", "R"], out
    assert served.wait(1)[0]["status"] == "Finished"


@pytest.mark.parametrize("shell", ["bash", "dash"])
def test_galloc_env_lasts_as_long_as_the_shell(served, shell):
    out = served.ok(shell, "-c", 'eval "$(galloc --env)"; echo "$CUDA_VISIBLE_DEVICES"; gqueue --noheader -f ST')
    assert out.split() == ["0", "R"], out
    assert served.wait(1)[0]["status"] == "Finished"


def scrape(machine):
    """The series of /metrics by name and labels, and the type of each name. Each line has to be one of the format."""
    with urllib.request.urlopen(machine.url + "/metrics", timeout=PATIENCE) as answer:
        assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
        text = answer.read().decode()
    series, types = {}, {}
    for line in text.splitlines():
        if found := re.fullmatch(r"# TYPE (\w+) (gauge|counter|histogram)", line):
            types[found[1]] = found[2]
        elif not line.startswith("# HELP "):
            name, labels, value = re.fullmatch(r'(\w+)(?:\{(.*)\})? (\S+)', line).groups()
            assert name in types or types[re.sub("_(bucket|count|sum)$", "", name)] == "histogram", line
            key = name, *sorted(re.findall(r'(\w+)="([^"]*)"', labels or ""))
            assert key not in series, line
            series[key] = float(value)
    return series, types


def of(series, name, **labels):
    """The one series of this name with these labels among its own."""
    found = [v for (its, *have), v in series.items() if its == name and labels.items() <= dict(have).items()]
    assert len(found) <= 1, (name, labels, found)
    return found[0] if found else None


def test_metrics_say_what_the_screens_say(served):
    before, types = scrape(served)
    assert of(before, "gflow_gpu_memory_total_bytes", gpu="2") == 80 << 30
    assert of(before, "gflow_gpu_state", gpu="0", state="free") == 1
    assert of(before, "gflow_jobs", state="Queued") == 0 and of(before, "gflow_queue_oldest_wait_seconds") is None
    served.wait(served.submit("true"), served.submit("false"))
    served.running(served.submit("--gpus", "0.25(V100)", "sleep", "1000"))
    served.submit("--gpus", "4", "sleep", "1000")
    served.ok("gctl", "drain", "gpu", "3")
    now, _ = scrape(served)
    assert of(now, "gflow_jobs_submitted_total") == 4 and types["gflow_jobs_submitted_total"] == "counter"
    assert of(now, "gflow_jobs_ended_total", state="Finished") == 1
    assert of(now, "gflow_jobs_ended_total", state="Failed") == 1
    assert of(now, "gflow_jobs", state="Running") == 1 and of(now, "gflow_jobs", state="Queued") == 1
    assert of(now, "gflow_queue_oldest_wait_seconds") >= 0
    assert of(now, "gflow_gpu_allocated_ratio", gpu="0") == 0.25 and of(now, "gflow_gpu_jobs", gpu="0") == 1
    assert of(now, "gflow_gpu_state", gpu="0", state="allocated") == 1
    assert of(now, "gflow_gpu_state", gpu="3", state="drained") == 1
    assert len({key for key in now if key[0].startswith("gflow_gpu_")}) == len(
        {key for key in before if key[0].startswith("gflow_gpu_")}), "as many series as there are GPUs"


def test_every_metric_is_in_the_document(served):
    document = (Path(__file__).parents[2] / "docs/metrics.md").read_text().split("## What other schedulers")[0]
    names = set(re.findall(r"`(gflow_\w+)`", document))
    served.running(served.submit("--gpus", "4", "sleep", "1000"))
    served.submit("--gpus", "4", "sleep", "1000")
    for setting in ("jobs", "users"):
        served.ok("gctl", "config", "set", f"metrics.{setting}", "true")
    # Nothing is read of these devices again and again, nobody tells what memory the job uses of them, and none is parked.
    names -= {"gflow_last_collect_timestamp_seconds", "gflow_job_gpu_memory_used_bytes", "gflow_job_gpu_memory_parked_bytes"}
    assert {name for name in scrape(served)[1] if name.startswith("gflow_")} == names
