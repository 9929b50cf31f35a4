# SPDX-License-Identifier: Apache-2.0
"""Every snippet of the document of the three ways to use a GPU (GPU负载方式详解), as it is printed there."""

import ast
import contextlib
import json
import re
import subprocess

import pytest
import wheels
from package import ROOT

DOCUMENT = ROOT / "tests/fixtures/documents/gpu_load_modes.md"

# What the document takes for granted: a cluster, and what other snippets made.
BEFORE = """
from src.gpu_memory_guard import GPUMemoryGuard
from src.gpu_parser import GPUResourceParser
from src.gpu_scheduler import SchedulingPolicy
class Client:
    nodes = [
        {"name": "gpu-node-1", "ready": True, "schedulable": True, "labels": {"gpu-type": "V100"},
         "gpu_info": {"nvidia": {"allocatable": 4, "available": 2}}, "cpu_allocatable": 8.0, "memory_allocatable": 32.0,
         "used_cpu": 2.0, "used_memory": 8.0},
        {"name": "gpu-node-2", "ready": True, "schedulable": True, "labels": {"gpu-type": "T4"},
         "gpu_info": {"nvidia": {"allocatable": 4, "available": 4}}}]
    def get_nodes(self): return self.nodes
    def get_pods(self): return [{"node_name": "gpu-node-1", "gpu_resources": {"nvidia.com/gpu": 2}}]
k8s_client = Client()
gpu_parser = GPUResourceParser()
memory_guard = GPUMemoryGuard(k8s_client, gpu_parser)
gpu_utilization_score = memory_utilization_score = cpu_utilization_score = fragmentation_penalty = 100
"""


def blocks():
    """All that is Python, in the order of the document."""
    return re.findall(r"^```python\n(.*?)^```", DOCUMENT.read_text(), re.MULTILINE | re.DOTALL)


def is_python(block):
    with contextlib.suppress(SyntaxError):
        return bool(ast.parse(block))
    return False


# Runs them in one session and says what it left.
SESSION = f"""
import json, sys
sys.path.append({str(ROOT / "tests/python")!r})
from guide import run_session
names = {{}}
exec({BEFORE!r}, names)
told = run_session(json.load(sys.stdin), names)
print(json.dumps([told, {{name: repr(value) for name, value in names.items() if name[0] != "_"}}]))
"""


@pytest.fixture(scope="module")
def session(tmp_path_factory):
    """All snippets in one program, in a clean environment: what each printed and logged, by its text, and the names they left."""
    folder = tmp_path_factory.mktemp("guide")
    inside = wheels.environment(folder / "clean", wheels.OWN, wheels.wheel(wheels.OWN), wheels.guide(folder))
    done = subprocess.run([inside, "-c", SESSION], input=json.dumps([[one, one] for one in blocks() if is_python(one)]), cwd=folder,
                          env={"PATH": "/usr/bin:/bin"}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_which_snippets_there_are():
    """Of nine one is YAML: what a pod says."""
    assert [is_python(one) for one in blocks()].count(False) == 1 and len(blocks()) == 9
    assert "nvidia.com/gpu: 2" in next(one for one in blocks() if not is_python(one))


def of(session, text):
    """What the snippet with this text printed and logged."""
    return next(left for block, left in session[0].items() if text in block)


def test_the_parser(session):
    said, _ = of(session, "parser = GPUResourceParser()")
    assert said == "显存: 8.0GB\n算力比例: 0.5\n"


CHOSEN = ["gpu_resource_manager", "INFO", "Pod training-job-1: 选择节点 gpu-node-1"]


def test_the_scheduler(session):
    assert of(session, "selected_node = scheduler.schedule_pod(request)") == ["", [CHOSEN]]
    assert session[1]["selected_node"] == "'gpu-node-1'"


def test_the_queue(session):
    assert of(session, "scheduler.process_pending_requests()") == ["", [CHOSEN]]


def test_the_memory_guard(session):
    assert of(session, "memory_guard.validate_memory_requirement")
    assert session[1]["is_valid"] == "True"


def test_the_formula(session):
    assert of(session, "score = (")
    assert session[1]["score"] == "100.0"


@pytest.mark.usefixtures("native")
def test_every_request_in_it_is_one():
    from gflow import GPUResourceParser

    parser = GPUResourceParser()
    texts = set(re.findall(r'^gpu_resource = "([^"]+)"', DOCUMENT.read_text(), re.MULTILINE))
    texts |= {ast.literal_eval(line.split("#")[0].strip()) for one in blocks() if '"2"    ' in one for line in one.splitlines() if line.startswith('"')}
    assert len(texts) == 9
    for text in sorted(texts):
        assert parser.parse(text).gpu_num > 0, text
