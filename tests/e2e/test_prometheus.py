# SPDX-License-Identifier: Apache-2.0
"""What gflowd serves for Prometheus: its formats, its names, and packaging/ in a real Prometheus."""

import json
import os
import re
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

import pytest
import yaml
from http_client import ask
from machine import PATIENCE, Gate, Machine
from metered import metered, scrape, value

PACKAGING = Path(__file__).parents[2] / "packaging"
RULES = PACKAGING / "prometheus"
DASHBOARD = json.loads((PACKAGING / "grafana/gflow.json").read_text())

needs_promtool = pytest.mark.skipif(not shutil.which("promtool"), reason="needs promtool (package prometheus)")
needs_prometheus = pytest.mark.skipif(not shutil.which("prometheus"), reason="needs Prometheus (package prometheus)")

DEVICES = """name: lab1
gpus:
- {model: H100, uuid: GPU-a, memory_total: 80G, memory_used: 1G, utilization_percent: 50, temperature_celsius: 61,
   power_watts: 300, power_limit_watts: 700}
- {model: H100, uuid: GPU-b, memory_total: 80G, memory_used: 2G, utilization_percent: 0, temperature_celsius: 40,
   power_watts: 70, power_limit_watts: 700}
"""

# Absent where there is no such thing: a simulated machine is not read again and again.
ABSENT = {"gflow_last_collect_timestamp_seconds"}


@pytest.fixture
def served(request):
    marker = request.node.get_closest_marker("config")
    made = Machine(config=marker.args[0] if marker else "")
    made.file = made.work / "devices.yaml"
    made.file.write_text(DEVICES)
    made.devices = f"sim:{made.file}"
    with metered(made):
        yield made


# -- formats


OPEN = "application/openmetrics-text"


@needs_promtool
@pytest.mark.config("[metrics]\ndcgm = true\njobs = true\nusers = true\n")
def test_promtool_finds_nothing_to_say(served):
    served.wait(served.submit("true"))
    _, text = scrape(served)
    # Names of others are theirs.
    ours = "\n".join(line for line in text.splitlines() if "DCGM_" not in line) + "\n"
    checked = subprocess.run(["promtool", "check", "metrics"], input=ours, text=True, capture_output=True, check=False)
    assert (checked.returncode, checked.stdout + checked.stderr) == (0, ""), checked


@pytest.mark.parametrize(("accept", "kind"), [
    ("", "text/plain"),
    ("*/*", "text/plain"),
    ("text/plain;version=0.0.4", "text/plain"),
    (f"{OPEN};version=1.0.0,{OPEN};version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1", OPEN),
    (f"{OPEN};q=0.3,text/plain;q=0.5", "text/plain"),
    (f"{OPEN};q=0,*/*", "text/plain"),
])
def test_the_format_is_the_one_preferred(served, accept, kind):
    content_type, text = scrape(served, accept)
    assert "Accept" in [name.strip() for line in ask(served, "GET", "/metrics", Accept=accept).headers.get_all("Vary")
                        for name in line.split(",")]
    assert content_type.startswith(kind + "; version="), content_type
    assert text.endswith("# EOF\n") == (kind == OPEN)


def test_exemplars_name_the_job(served):
    job = served.submit("true")
    served.wait(job)
    _, text = scrape(served, OPEN)
    found = re.findall(r'^gflow_job_runtime_seconds_bucket\{le="([^"]+)"\} 1 # \{job_id="(\d+)"\} \S+ \S+$', text, re.MULTILINE)
    assert found == [("1.0", str(job))], text
    assert "# TYPE gflow_jobs_submitted counter\n" in text and "\ngflow_jobs_submitted_total 1\n" in text
    assert " # {" not in scrape(served)[1]


# -- what is counted


def test_starts_ends_and_waits_are_counted(served):
    served.wait(served.submit("--gpus", "1", "true"), served.submit("false"))
    gate = Gate(served)
    # On a GPU for some time: one that starts and ends between two ticks has run for none.
    again = served.submit("--gpus", "1", "--max-retries", "1", "bash", "-c", f"{gate.command}; exit 1")
    for _ in range(2):
        gate.reached()
        gate.open()
    served.wait(again)
    _, text = scrape(served)
    assert value(text, "gflow_jobs_submitted_total") == 3
    assert value(text, "gflow_attempts_started_total") == 4
    assert value(text, 'gflow_jobs_requeued_total{cause="failed"}') == 1
    assert value(text, 'gflow_jobs_ended_total{state="Failed"}') == 2
    assert value(text, "gflow_job_wait_seconds_count") == 3
    assert value(text, "gflow_job_runtime_seconds_count") == 3
    assert value(text, "gflow_gpu_seconds_total") > 0
    assert value(text, 'gflow_node_healthy{node="lab1"}') == 1
    assert value(text, "gflow_disk_full") == 0 and value(text, "gflow_disk_free_bytes") > 0
    assert value(text, "process_resident_memory_bytes") > 1 << 20
    assert "job_id" not in text and "user=" not in text


def requests_of(text, route, method, code):
    return value(text, f'gflow_http_requests_total{{route="{route}",method="{method}",code="{code}"}}')


@pytest.mark.parametrize("accept", ["", OPEN])
def test_what_is_asked_is_counted_by_route(served, accept):
    host, port = served.url.removeprefix("http://").split(":")
    assert all(served.get("/api/v1/jobs") for _ in range(3))
    for target in ("/api/v1/jobs/4711", "/api/v1/jobs/4712", "/nothing/of/the/sort"):
        with pytest.raises(urllib.error.HTTPError):
            urllib.request.urlopen(served.url + target, timeout=PATIENCE)
    with socket.create_connection((host, int(port))) as listening, socket.create_connection((host, int(port))) as wrong:
        listening.sendall(b"GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert listening.recv(100).startswith(b"HTTP/1.1 200 ")
        wrong.sendall(b"no HTTP at all\r\n\r\n")
        assert wrong.recv(100).startswith(b"HTTP/1.1 400 ")
        _, text = scrape(served, accept)
    assert requests_of(text, "/api/v1/jobs", "GET", 200) == 3
    assert requests_of(text, "/api/v1/jobs/{id}", "GET", 404) == 2
    assert requests_of(text, "/api/v1/events", "GET", 200) == 1
    assert requests_of(text, "(others)", "(others)", 404) == 1
    assert requests_of(text, "(others)", "(others)", 400) == 1
    assert value(text, "gflow_http_streams") == 1
    assert value(text, 'gflow_http_refused_total{reason="malformed"}') == 1
    assert value(text, 'gflow_http_connections{via="tcp"}') >= 2
    name = "gflow_http_request_duration_seconds"
    of = 'route="/api/v1/jobs",method="GET"'
    counts = [int(count) for count in re.findall(rf'^{name}_bucket{{{of},le="[^"]+"}} (\d+)$', text, re.MULTILINE)]
    assert counts == sorted(counts) and counts[-1] == value(text, f"{name}_count{{{of}}}") == 3, text
    assert 0 < value(text, f"{name}_sum{{{of}}}") < PATIENCE
    assert "4711" not in text and "/nothing" not in text


def test_jobs_that_wait_are_counted_by_reason(served):
    def pending(text):
        found = re.findall(r'^gflow_jobs_pending{reason="([^"]+)"} (\d+)$', text, re.MULTILINE)
        assert len(found) > 10
        return {reason: int(count) for reason, count in found if count != "0"}

    assert pending(scrape(served)[1]) == {}
    runs = served.submit("--gpus", "2", "sleep", "infinity")
    served.running(runs)
    served.ok("gbatch", "--array", "1-5", "--gpus", "1", "true")
    served.submit("--hold", "true")
    served.submit("--begin", "now+1h", "true")
    served.submit("--depends-on", runs, "true")
    waits = {job["id"] for job in served.get("/api/v1/jobs?state=Queued")["jobs"]}
    _, text = scrape(served)
    assert pending(text) == {"gpus": 5, "hold": 1, "begin": 1, "dependency": 1}, text
    assert value(text, 'gflow_jobs{state="Queued"}') == len(waits) == 7


@pytest.mark.config("[metrics]\njobs = true\nusers = true\n")
def test_who_uses_what_is_told_if_wanted(served):
    gate = Gate(served)
    job = served.submit("--gpus", "0.5", "--project", "vision", "bash", "-c", gate.command)
    gate.reached()
    _, text = scrape(served)
    user = served.job(job)["spec"]["user"] if "user" in served.job(job)["spec"] else served.job(job)["user"]
    assert value(text, f'gflow_job_gpus{{job_id="{job}",user="{user["name"]}",project="vision"}}') == 0.5
    assert value(text, f'gflow_user_gpus{{user="{user["name"]}"}}') == 0.5
    gate.open()
    served.wait(job)
    assert "gflow_user_gpus{" not in scrape(served)[1]


@pytest.mark.config("[metrics]\ndcgm = true\n")
def test_the_names_of_dcgm(served):
    gate = Gate(served)
    job = served.submit("--gpus", "1", "bash", "-c", gate.command)
    gate.reached()
    held = served.job(job)["gpu_indices"][0]
    _, text = scrape(served)
    lines = {line for line in text.splitlines() if line.startswith("DCGM_FI_DEV_FB_USED{")}
    assert len(lines) == 2
    for line in lines:
        index = int(re.search(r'gpu="(\d)"', line)[1])
        labels = f'{{gpu="{index}",UUID="GPU-{"ab"[index]}",pci_bus_id="'
        assert labels in line and f'device="nvidia{index}"' in line and 'Hostname="lab1"' in line, line
        assert 'modelName="' in line and line.endswith(f" {1024 * (index + 1)}"), line
        assert (f'hpc_job="{job}"' in line) == (index == held), line
    assert re.search(r'^DCGM_FI_DEV_GPU_UTIL\{gpu="0",.*\} 50$', text, re.MULTILINE)
    assert re.search(r'^DCGM_FI_DEV_POWER_USAGE\{gpu="1",.*\} 70$', text, re.MULTILINE)
    gate.open()


def test_the_files_of_an_existing_dcgm_exporter(served):
    place = served.work / "hpc"
    place.mkdir()
    (place / "7").write_text("left of an earlier daemon\n")
    gate = Gate(served)
    job = served.submit("--gpus", "1", "bash", "-c", gate.command)
    gate.reached()
    served.ok("gctl", "config", "set", "metrics.hpc_job_mapping_dir", place)
    held = served.job(job)["gpu_indices"][0]

    def until(wanted):
        deadline = time.monotonic() + PATIENCE
        while (files := {path.name: path.read_text() for path in place.glob("[0-9]*")}) != wanted:
            assert time.monotonic() < deadline, files
            os.sched_yield()

    until({str(held): f"{job}\n"})
    served.ok("gflowd", "restart")
    until({str(held): f"{job}\n"})
    gate.open()
    served.wait(job)
    until({})


# -- packaging


@needs_promtool
def test_rules_and_configuration_are_valid_and_do_what_they_say():
    for words in (["check", "config", "prometheus.yml"], ["test", "rules", "gflow.rules.test.yml"]):
        done = subprocess.run(["promtool", *words], cwd=RULES, text=True, capture_output=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    rules = yaml.safe_load((RULES / "gflow.rules.yml").read_text())
    tests = (RULES / "gflow.rules.test.yml").read_text()
    untested = [rule["alert"] for group in rules["groups"] for rule in group["rules"] if rule.get("alert", "Gflow") not in tests]
    assert not untested


def panels():
    return [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]


def test_the_dashboard_is_one():
    """What Grafana asks of one; Grafana itself is no package of Debian."""
    assert DASHBOARD["schemaVersion"] >= 39 and DASHBOARD["uid"] == "gflow" and "id" not in DASHBOARD
    ids = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(set(ids)) == len(ids)
    taken = set()
    for panel in DASHBOARD["panels"]:
        place = panel["gridPos"]
        cells = {(x, y) for x in range(place["x"], place["x"] + place["w"]) for y in range(place["y"], place["y"] + place["h"])}
        assert place["x"] + place["w"] <= 24 and not cells & taken, panel["title"]
        taken |= cells
    for panel in panels():
        assert panel["type"] in {"timeseries", "stat", "table", "state-timeline"}, panel["title"]
        assert panel["targets"] and len({t["refId"] for t in panel["targets"]}) == len(panel["targets"])
        assert all(t["datasource"] == {"type": "prometheus", "uid": "${DS_PROMETHEUS}"} for t in [panel, *panel["targets"]])
    known = {variable["name"] for variable in DASHBOARD["templating"]["list"]} | {"__rate_interval"}
    used = set(re.findall(r"\$\{?(\w+)", json.dumps(DASHBOARD))) - {"__all"}
    assert used <= known, used - known


class Prometheus:
    """A real one that has loaded packaging/prometheus and scrapes a machine each second."""

    def __init__(self, machine):
        place = machine.work / "prometheus"
        shutil.copytree(RULES, place)
        config = yaml.safe_load((place / "prometheus.yml").read_text())
        config["global"] = {"scrape_interval": "1s", "evaluation_interval": "1s"}
        config["scrape_configs"][0]["static_configs"][0]["targets"] = [machine.url.removeprefix("http://")]
        (place / "prometheus.yml").write_text(yaml.safe_dump(config))
        self.process = subprocess.Popen(
            ["prometheus", "--config.file=prometheus.yml", f"--storage.tsdb.path={machine.work}/tsdb",
             "--web.listen-address=127.0.0.1:0", "--enable-feature=exemplar-storage"],
            cwd=place, stderr=subprocess.PIPE, text=True)
        self.url, said = None, []
        for line in self.process.stderr:
            said.append(line)
            if found := re.search(r'msg="Listening on" address=(127\.0\.0\.1:\d+)', line):
                self.url = f"http://{found[1]}"
            if "Server is ready to receive web requests" in line:
                break
        assert self.url, "".join(said)

    def get(self, what, **query):
        with urllib.request.urlopen(f"{self.url}/api/v1/{what}?{urllib.parse.urlencode(query)}", timeout=PATIENCE) as answer:
            return json.loads(answer.read())["data"]

    def query(self, expression):
        return self.get("query", query=expression)["result"]

    def until(self, expression):
        """Its result once there is one: Prometheus itself decides when it scrapes."""
        deadline = time.monotonic() + PATIENCE
        while not (result := self.query(expression)):
            assert time.monotonic() < deadline, expression
        return result

    def close(self):
        self.process.terminate()
        self.process.communicate()


def expressions_of_the_dashboard():
    for panel in panels():
        for target in panel["targets"]:
            yield target["expr"].replace("$__rate_interval", "5m").replace("$node", ".*").replace("$gpu", ".*")
    for annotation in DASHBOARD["annotations"]["list"]:
        yield annotation["expr"].partition(" > ")[0]


def names_in(expression):
    return set(re.findall(r"\b(?:gflow|process|DCGM)_\w+", expression))


@needs_prometheus
@pytest.mark.config("[metrics]\njobs = true\nusers = true\n")
def test_a_real_prometheus_gets_all_that_rules_and_dashboard_ask_for(served):
    gate = Gate(served)
    served.file.write_text(DEVICES.replace("memory_used: 1G,", "memory_used: 1G, processes: [{pid: 1, user: x, name: y, memory: 1G}],"))
    running = served.submit("--gpus", "1", "bash", "-c", gate.command)
    gate.reached()
    quick = served.submit("true")
    served.wait(quick)
    served.submit("--gpus", "2", "true")  # waits
    on_it = DEVICES.replace("memory_used: 2G,", f"memory_used: 2G, processes: [{{pid: {served.job(running)['pid']}, memory: 1G}}],")
    served.file.write_text(on_it)
    prometheus = Prometheus(served)
    try:
        prometheus.until("up == 1")  # where a busy machine answers late it is asked again
        rules = [rule for group in prometheus.get("rules")["groups"] for rule in group["rules"]]
        assert len(rules) == 24
        for expression in expressions_of_the_dashboard():
            prometheus.until(expression)
        for rule in rules:
            for name in names_in(rule["query"]) - ABSENT:
                prometheus.until(name)
            prometheus.query(rule["query"])
            if rule["type"] == "recording":
                prometheus.until(rule["name"])
        assert prometheus.query("gflow_gpu_utilization_ratio{gpu='0'}")[0]["value"][1] == "0.5"
        job = prometheus.get("query_exemplars", query="gflow_job_wait_seconds_bucket", start=0, end=time.time() + 60)
        assert {e["labels"]["job_id"] for one in job for e in one["exemplars"]} == {str(quick)}
        served.down()
        assert prometheus.until('ALERTS{alertname="GflowDown",alertstate="pending"}')
    finally:
        prometheus.close()
    gate.open()
