# SPDX-License-Identifier: Apache-2.0
"""The life of jobs as OpenTelemetry traces, taken by a small collector that reads what it is sent."""

import contextlib
import json
import os
import queue
import re
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from machine import PATIENCE, Gate, Machine
from metered import metered, scrape, value

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
SPAN = "00f067aa0ba902b7"


class Collector:
    """Answers with the statuses it is given, then with 200; keeps the spans it took."""

    def __init__(self, *statuses, hang=False):
        self.statuses = list(statuses)
        self.spans = queue.Queue()
        self.asked = queue.Queue()
        self.let_go = threading.Event()
        collector = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                collector.asked.put((self.path, self.headers["Content-Type"], body))
                if hang:
                    collector.let_go.wait()
                status = collector.statuses.pop(0) if collector.statuses else 200
                if status == 200:
                    for resource in body["resourceSpans"]:
                        for scope in resource["scopeSpans"]:
                            for span in scope["spans"]:
                                collector.spans.put(span)
                self.send_response(status)
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"{}")

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def of_job(self, job):
        """Its spans once the last of them, that of the job, is there, by name and attempt."""
        found = {}
        while not any(name.startswith("job ") for name, _ in found):
            span = self.spans.get(timeout=PATIENCE)
            attributes = attributes_of(span)
            if attributes["gflow.job.id"] == str(job):
                found[span["name"], attributes.get("gflow.attempt", "")] = span
        return found

    def close(self):
        self.let_go.set()
        self.server.shutdown()
        self.server.server_close()


def attributes_of(span):
    return {one["key"]: next(iter(one["value"].values())) for one in span["attributes"]}


@pytest.fixture
def traced(request):
    marker = request.node.get_closest_marker("collector")
    collector = Collector(*(marker.args if marker else ()), **(marker.kwargs if marker else {}))
    made = Machine(config=f'[telemetry]\notlp_endpoint = "{collector.url}"\n')
    made.collector = collector
    with contextlib.closing(collector), metered(made):
        yield made


def counted(machine, which):
    _, text = scrape(machine)
    return value(text, f"gflow_trace_spans_{which}_total")


def until_counted(machine, which, least):
    deadline = time.monotonic() + PATIENCE
    while counted(machine, which) < least:
        assert time.monotonic() < deadline, which
        os.sched_yield()


def test_a_job_is_a_trace_in_that_of_its_submitter(traced):
    job = traced.submit("--name", "train", "--project", "vision", "--gpus", "1", "bash", "-c", "echo $TRACEPARENT; exit 3",
                        env={"TRACEPARENT": f"00-{TRACE}-{SPAN}-01"})
    traced.wait(job)
    spans = traced.collector.of_job(job)
    assert set(spans) == {("queued", ""), ("starting", ""), ("running", "1"), ("job train", "")}
    root = spans["job train", ""]
    assert {span["traceId"] for span in spans.values()} == {TRACE}
    assert root["parentSpanId"] == SPAN
    assert all(span["parentSpanId"] == root["spanId"] for span in spans.values() if span is not root)
    assert len({span["spanId"] for span in spans.values()}) == 4
    running = spans["running", "1"]
    assert traced.log(job) == f"00-{TRACE}-{running['spanId']}-01\n", "what the job was told is the span it is in"
    order = ["queued", "starting", "running"]
    times = [(int(spans[key]["startTimeUnixNano"]), int(spans[key]["endTimeUnixNano"])) for name in order for key in spans if key[0] == name]
    assert times[0][0] == int(root["startTimeUnixNano"]) and times[-1][1] == int(root["endTimeUnixNano"])
    assert all(begin <= end for begin, end in times) and times == sorted(times)
    said = attributes_of(root)
    assert (said["gflow.job.name"], said["gflow.job.project"], said["gflow.job.status"], said["process.exit.code"]) == (
        "train", "vision", "Failed", "3")
    assert root["status"]["code"] == 2 and "exit" in root["status"]["message"]
    assert attributes_of(running)["gflow.gpus"] == "0"
    path, kind, body = traced.collector.asked.get()
    assert (path, kind) == ("/v1/traces", "application/json")
    resource = {one["key"]: one["value"]["stringValue"] for one in body["resourceSpans"][0]["resource"]["attributes"]}
    assert resource["service.name"] == "gflowd" and resource["host.name"]
    assert "echo" not in json.dumps(body), "what was run is nobody's business"
    until_counted(traced, "sent", 4)
    assert counted(traced, "dropped") == 0


def test_without_a_trace_a_job_begins_one_and_attempts_are_told_apart(traced):
    gate = Gate(traced)
    job = traced.submit("--max-retries", "1", "bash", "-c", f"echo $TRACEPARENT; {gate.command}; exit 1")
    for _ in range(2):
        gate.reached()
        gate.open()
    traced.wait(job)
    spans = traced.collector.of_job(job)
    root = next(span for (name, _), span in spans.items() if name.startswith("job "))
    assert "parentSpanId" not in root and attributes_of(root)["gflow.job.attempts"] == "2"
    trace = root["traceId"]
    told = traced.log(job).split()
    assert told == [f"00-{trace}-{spans['running', n]['spanId']}-01" for n in ("1", "2")], spans


def test_one_that_never_ran_and_one_that_is_not_sampled(traced):
    quiet = traced.submit("bash", "-c", "echo $TRACEPARENT", env={"TRACEPARENT": f"00-{TRACE}-{SPAN}-00"})
    traced.wait(quiet)
    assert re.fullmatch(rf"00-{TRACE}-[0-9a-f]{{16}}-00\n", traced.log(quiet))
    never = traced.submit("--hold", "true", env={"TRACEPARENT": f"00-{TRACE}-{SPAN}-01"})
    traced.ok("gcancel", never)
    spans = traced.collector.of_job(never)
    assert sorted(name for name, _ in spans)[-1] == "queued" and len(spans) == 2
    assert all(attributes_of(span)["gflow.job.id"] == str(never) for span in traced.collector.spans.queue)


def test_a_restarted_daemon_goes_on_with_the_trace(traced):
    gate = Gate(traced)
    job = traced.submit("bash", "-c", f"echo $TRACEPARENT; {gate.command}", env={"TRACEPARENT": f"00-{TRACE}-{SPAN}-01"})
    gate.reached()
    traced.ok("gflowd", "restart")
    gate.open()
    traced.wait(job)
    spans = traced.collector.of_job(job)
    root = next(span for (name, _), span in spans.items() if name.startswith("job "))
    assert (root["traceId"], root["parentSpanId"]) == (TRACE, SPAN)
    assert traced.log(job) == f"00-{TRACE}-{spans['running', '1']['spanId']}-01\n"


@pytest.mark.collector(503)
def test_a_collector_that_is_busy_is_asked_again(traced):
    job = traced.submit("true")
    traced.wait(job)
    assert len(traced.collector.of_job(job)) == 4
    assert counted(traced, "dropped") == 0


@pytest.mark.collector(*[400] * 100)
def test_what_is_refused_is_dropped_and_counted(traced):
    traced.wait(traced.submit("true"))
    until_counted(traced, "dropped", 4)
    assert counted(traced, "sent") == 0 and traced.collector.spans.empty()


@pytest.mark.collector(hang=True)
def test_a_collector_that_does_not_answer_keeps_nobody_waiting(traced):
    traced.wait(traced.submit("true"))
    traced.collector.asked.get(timeout=PATIENCE)  # and hangs from now on
    out = traced.ok("gbatch", "--array", "1-800", "--hold", "true")
    jobs = [int(number) for number in re.findall(r"job (\d+)", out)]
    traced.ok("gcancel", f"{jobs[0]}-{jobs[-1]}")
    assert {job["status"] for job in traced.wait(jobs[-1])} == {"Cancelled"}
    late = traced.submit("true")
    assert traced.wait(late)[0]["status"] == "Finished"
    until_counted(traced, "dropped", 1)  # more than may wait
    assert counted(traced, "sent") == 0


def test_off_it_changes_nothing(machine):
    job = machine.submit("bash", "-c", "echo ${TRACEPARENT-none}")
    told = machine.submit("bash", "-c", "echo $TRACEPARENT", env={"TRACEPARENT": f"00-{TRACE}-{SPAN}-01"})
    machine.wait(job, told)
    assert machine.log(job) == "none\n"
    assert machine.log(told) == f"00-{TRACE}-{SPAN}-01\n"
