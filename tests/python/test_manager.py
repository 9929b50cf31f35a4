# SPDX-License-Identifier: Apache-2.0
"""gflow.manager, the GPU resource manager of the guide: its snippets as they are printed there, and what each call does."""

import json
import math
import os
import re
import socket
import subprocess
import sys

import gflow
import pytest
import wheels
from package import ROOT, SOURCE
from guide import OF_FRAMEWORKS, PATHS, PLAIN, snippets
from gflow import _local, manager
from gflow._terms import framework_terms
from gflow.manager import GPUResourceManager, TrainingGPUConfig

PATHS_OF_GUIDE = {"PYTHONPATH": f"{SOURCE}:{PATHS}:{ROOT}/tests/python"}

# Runs them in one session and says what it left.
SESSION = """
import json, logging, sys
from guide import run_session
async def train_model(): return "gpu"
async def train_model_cpu(): return "cpu"
names = {"logger": logging.getLogger("training"), "train_model": train_model, "train_model_cpu": train_model_cpu}
print(json.dumps(run_session(json.load(sys.stdin), names)))
"""


@pytest.fixture
def guide(machine, python, tmp_path):
    """Runs snippets of the guide; by title, what each printed and what was logged."""

    def run(titles, before="", **env):
        blocks = [["before", before], *([title, snippets()[title]] for title in titles)]
        done = subprocess.run([sys.executable, "-c", SESSION], input=json.dumps(blocks), capture_output=True, text=True,
                              env=machine.environment | PATHS_OF_GUIDE | env, cwd=machine.work, timeout=120, check=False)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run


def test_every_snippet_of_the_guide_is_run():
    assert [title for title in snippets() if title not in PLAIN and title not in OF_FRAMEWORKS] == []
    for title, file in OF_FRAMEWORKS.items():
        assert f'"{title}"' in (ROOT / "tests/frameworks" / file).read_text(), title


@pytest.mark.devices("sim:4xV100+4xA100")
def test_the_snippets_do_what_they_say(guide, machine):
    told = guide(PLAIN)
    node = socket.gethostname()
    assert told["基本使用"] == [f"分配到的节点: {node}\n", [
        ["gpu_resource_manager", "INFO", f"GPU资源分配成功: {node} (2个GPU)"]]]
    assert re.fullmatch(r"GPU利用率: \d+\.\d\d%\n显存使用率: \d+\.\d\d%\n", told["显存监控"][0])
    assert told["资源不足处理"][1] == [["gpu_resource_manager", "INFO", f"GPU资源分配成功: {node} (2个GPU)"]]
    assert told["显存不足处理"] == ["", []]
    assert told["2. 检查GPU状态"][0].splitlines() == [
        f"节点: {node}", "GPU类型: V100", "可用GPU: 2", "显存: 32.0GB", "利用率: 0.00%",
        f"节点: {node}", "GPU类型: A100", "可用GPU: 4", "显存: 80.0GB", "利用率: 0.00%"]
    assert re.fullmatch(r"训练耗时: 0\.\d\d秒\nGPU利用率: \d+\.\d\d%\n", told["3. 性能分析"][0])
    machine.wait(1, 2)  # what was allocated goes with the program


@pytest.mark.devices("sim:1xT4")
def test_the_snippets_where_there_is_too_little(guide):
    told = guide(["单GPU训练配置", "显存不足处理"], "from gflow.manager import *\ngpu_manager = get_gpu_resource_manager()")
    logged = told["显存不足处理"][1]
    assert [one[:2] for one in logged] == [
        ["gpu_resource_manager", "WARNING"], ["gpu_resource_manager", "WARNING"], ["training", "ERROR"]]
    assert "T4" in logged[0][2] and logged[2][2] == "显存需求无法满足，请使用更小的模型或更多GPU"
    told = guide(["单GPU训练配置", "资源不足处理"], "from gflow.manager import *\ngpu_manager = get_gpu_resource_manager()")
    assert told["资源不足处理"][1][-1] == ["training", "WARNING", "GPU资源不足，使用CPU训练"]


@pytest.fixture
def resources(client):
    return GPUResourceManager(client)


@pytest.mark.devices("sim:2xV100+2xA100")
def test_allocating_and_cleaning_up(resources, client, monkeypatch, caplog):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert resources.initialized
    node = resources.allocate_gpu_resources(TrainingGPUConfig(gpu_count=2, gpu_type="A100", memory_gb=80.0))
    assert node == socket.gethostname() and os.environ["CUDA_VISIBLE_DEVICES"] == "2,3"
    assert resources.allocate_gpu_resources(TrainingGPUConfig(gpu_type="A100")) is None
    assert "GPU资源不足: Need 1 A100 GPU, none available" in caplog.text
    assert resources.allocate_gpu_resources(TrainingGPUConfig(gpu_count=9)) is None
    assert [(one.gpu_type, one.available_gpus, one.memory_per_gpu) for one in resources.get_available_gpu_nodes()] == [
        ("V100", 2, 32.0)]
    assert resources.get_available_gpu_nodes("V100", 40) == []
    assert resources.cleanup_gpu_resources(node, 2) is True
    assert "CUDA_VISIBLE_DEVICES" not in os.environ and client.allocations() == []
    for nothing in ((node, 2), (node, None), ("elsewhere", 1), (None, 2)):
        assert resources.cleanup_gpu_resources(*nothing) is False


@pytest.mark.devices("sim:2xV100+2xA100")
def test_one_of_another_program_of_this_user_is_cleaned_up_too(resources, client):
    client.call("POST", "/api/v1/gpu/allocate", {"gpu_count": 2})
    assert resources.cleanup_gpu_resources(socket.gethostname(), 2) is True
    client.wait(1)
    assert client.allocations() == []


@pytest.mark.devices("sim:2xV100+2xA100")
def test_one_that_was_taken_back_is_told(resources, client, machine, caplog):
    node = resources.allocate_gpu_resources(TrainingGPUConfig())
    machine.ok("gcancel", 1)
    client.wait(1)
    assert resources.cleanup_gpu_resources(node, 1) is False
    assert "ended before it was given back" in caplog.text


@pytest.mark.devices("sim:2xV100+2xA100")
def test_validating(resources, caplog):
    assert resources.validate_gpu_requirements(TrainingGPUConfig(gpu_count=2, gpu_type="V100", memory_gb=32.0))
    assert not resources.validate_gpu_requirements(TrainingGPUConfig(gpu_type="V100", memory_gb=80.0))
    assert not resources.validate_gpu_requirements(TrainingGPUConfig(gpu_type="H100"))
    assert "H100" in caplog.text


@pytest.mark.parametrize(("changes", "says"), [
    ({"gpu_count": 0}, "gpu_count=0: an allocation has at least 1 GPU"), ({"gpu_count": -1}, "gpu_count=-1: "),
    ({"gpu_count": None}, "gpu_count=None is not a whole number"), ({"gpu_count": math.nan}, "gpu_count=nan is not a whole number"),
    ({"gpu_count": 1.5}, "gpu_count=1.5 is not a whole number"), ({"gpu_count": True}, "gpu_count=True is not"),
    ({"memory_gb": math.nan}, "memory_gb=nan is not an amount of memory in GB"), ({"memory_gb": math.inf}, "memory_gb=inf is not an amount"),
    ({"memory_gb": -1}, "memory_gb=-1 is not an amount"), ({"memory_gb": "16G"}, "memory_gb='16G' is not an amount"),
    ({"compute_ratio": math.nan}, "compute_ratio=nan is not a part of a GPU: above 0 and at most 1"),
    ({"compute_ratio": None}, "compute_ratio=None is not a part"), ({"compute_ratio": 0}, "compute_ratio=0 is not a part"),
    ({"gpu_memory_fraction": math.nan}, "gpu_memory_fraction=nan is not a part"),
    ({"gpu_memory_fraction": None}, "gpu_memory_fraction=None is not a part"),
    ({"gpu_memory_fraction": 1.01}, "gpu_memory_fraction=1.01 is not a part"),
    ({"gpu_type": 5}, "gpu_type=5 is not a text: "), ({"gpu_type": ["A100"]}, "gpu_type=['A100'] is not a text: "),
])
def test_numbers_that_are_none_are_refused_before_anybody_is_asked(resources, client, changes, says):
    config = TrainingGPUConfig(**changes)
    for call in (resources.validate_gpu_requirements, resources.allocate_gpu_resources, TrainingGPUConfig.need):
        with pytest.raises(gflow.OptionError, match=re.escape(says)):
            call(config)
    assert client.allocations() == []


def test_other_numbers_that_are_none(resources):
    for call, says in [
        (lambda: resources.get_available_gpu_nodes("", math.nan), "min_memory_gb=nan is not an amount"),
        (lambda: resources.get_available_gpu_nodes("", None), "min_memory_gb=None is not an amount"),
        (lambda: resources.get_available_gpu_nodes(["V100"]), "gpu_type=['V100'] is not a text"),
        (lambda: resources.cleanup_gpu_resources(5, 1), "node_name=5 is not the name of a node"),
        (lambda: resources.cleanup_gpu_resources("n", math.nan), "gpu_count=nan is not a whole number"),
        (lambda: resources.set_memory_strategy(TrainingGPUConfig(), "dynamic", math.nan), "model_memory_gb=nan is not an amount"),
        (lambda: resources.set_memory_strategy(TrainingGPUConfig(), "dynamic", math.inf), "model_memory_gb=inf is not an amount"),
        (lambda: resources.set_memory_strategy(TrainingGPUConfig(memory_gb=math.nan), "dynamic", 1), "memory_gb=nan is not an amount"),
    ]:
        with pytest.raises(gflow.OptionError, match=re.escape(says)):
            call()


@pytest.mark.devices("sim:2xV100+2xA100")
def test_distributed_training(resources, monkeypatch):
    config = TrainingGPUConfig(gpu_count=2, gpu_type="V100", distributed_training=True)
    with pytest.raises(gflow.NoGpus, match="allocate_gpu_resources"):
        resources.setup_distributed_training(config)
    node = resources.allocate_gpu_resources(config)
    told = resources.setup_distributed_training(config)
    assert (told["world_size"], told["devices"], told["backend"]) == (2, ["cuda:0", "cuda:1"], "nccl")
    assert os.environ["WORLD_SIZE"] == "2" and os.environ["MASTER_ADDR"] and int(os.environ["MASTER_PORT"])
    assert told["environment"]["CUDA_VISIBLE_DEVICES"] == os.environ["CUDA_VISIBLE_DEVICES"] == "0,1"
    resources.cleanup_gpu_resources(node)
    assert not {"MASTER_PORT", "WORLD_SIZE", "CUDA_VISIBLE_DEVICES"} & set(os.environ)


@pytest.mark.devices("sim:2xV100+2xA100")
@pytest.mark.parametrize("need", [
    {}, {"gpu_count": 2}, {"gpu_count": 2, "distributed_training": True, "gpu_memory_fraction": 0.7}, {"mixed_precision": False},
    {"gpu_count": 2, "gpu_type": "A100", "distributed_training": True, "mixed_precision": False, "gpu_memory_fraction": 0.333},
])
def test_what_frameworks_are_told_without_gflowd_is_what_it_tells(resources, need):
    config = TrainingGPUConfig(**{"gpu_type": "V100", **need})
    allocation = resources.hold(config, is_seen=False)
    for framework in ("pytorch", "tensorflow"):
        told = allocation.setup(framework, config)
        told.pop("environment")
        assert framework_terms(framework, config, allocation.count, {"V100": 32.0, "A100": 80.0}[config.gpu_type]) == told
    assert resources.give_back(allocation) is True and resources.give_back(allocation) is False


@pytest.mark.devices("sim:2xV100+2xA100")
def test_memory_strategies(resources):
    config = TrainingGPUConfig(gpu_type="V100")
    assert resources.set_memory_strategy(config, "conservative") == config.gpu_memory_fraction == 0.8
    assert resources.set_memory_strategy(config, "aggressive") == 0.95
    assert resources.set_memory_strategy(config, "dynamic", model_memory_gb=3.2) == pytest.approx(0.5)
    assert resources.set_memory_strategy(config, "dynamic", model_memory_gb=300) == 0.95
    assert resources.set_memory_strategy(config, "dynamic", model_memory_gb=0.001) == 0.1
    for wrong in (("dynamic",), ("greedy",)):
        with pytest.raises(ValueError, match="strateg"):
            resources.set_memory_strategy(config, *wrong)


def test_what_is_not_measured_is_not_made_up(resources, monkeypatch):
    """The guide's `.get('gpu_utilization', 0.0)` and `:.2%` work where a driver does not tell."""
    told = {"utilization": {"gpu_utilization": None, "gpu_memory_usage": 0.5}, "nodes": []}
    monkeypatch.setattr(manager.DaemonSource, "monitoring", lambda self: told)
    assert resources.get_gpu_monitoring_data()["utilization"] == {"gpu_memory_usage": 0.5}
    nodes = [{"node_name": "n", "gpu_type": "X", "available_gpus": 1, "memory_per_gpu": None, "utilization": None}]
    monkeypatch.setattr(manager.DaemonSource, "nodes", lambda self, *wanted: nodes)
    (node,) = resources.get_available_gpu_nodes()
    assert math.isnan(node.utilization) and f"{node.utilization:.2%}" == "nan%"


SMI = """#!/bin/sh
[ "$2" = --format=csv,noheader,nounits ] || exit 9
echo "0, GPU-a, Tesla V100-SXM2-32GB, 32768, 4, 0, 33, 42.10"
echo "1, GPU-b, Tesla V100-SXM2-32GB, 32768, 4, 50, 33, [N/A]"
echo "2, GPU-c, Tesla V100-SXM2-32GB, 32768, 30000, 100, 70, 250.00"
"""

LOCAL = """
import logging, os, json
from gflow.manager import *
logging.basicConfig(format="%(name)s:%(levelname)s:%(message)s", level=logging.INFO)
m = get_gpu_resource_manager()
assert m is get_gpu_resource_manager()
two = TrainingGPUConfig(gpu_count=2, gpu_type="V100", memory_gb=32.0, distributed_training=True)
print(m.initialized, m.validate_gpu_requirements(two), m.validate_gpu_requirements(TrainingGPUConfig(gpu_count=4)))
print(m.get_gpu_monitoring_data()["utilization"])
print([(n.gpu_type, n.available_gpus, n.utilization) for n in m.get_available_gpu_nodes("V100")])
node = m.allocate_gpu_resources(two)
print(os.environ.get("CUDA_VISIBLE_DEVICES"), m.allocate_gpu_resources(two))
print(m.setup_distributed_training(two)["world_size"] if node else None, "MASTER_PORT" in os.environ)
print(m.cleanup_gpu_resources(node, 2), m.cleanup_gpu_resources(node, 2), os.environ.get("CUDA_VISIBLE_DEVICES"))
"""


def local(bare, path=""):
    environment = bare.environment | {"PYTHONPATH": str(wheels.package()), "PYTHONWARNINGS": "error"}
    environment["PATH"] = f"{path}:/usr/bin:/bin" if path else "/usr/bin:/bin"
    environment["GFLOW_SOCKET"] = f"{bare.root}/nobody.sock"
    done = subprocess.run([sys.executable, "-c", LOCAL], env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines(), done.stderr


def test_without_gflowd_the_gpus_of_this_machine_are_used_which_is_said_once(bare):
    tool = bare.work / "nvidia-smi"
    tool.write_text(SMI)
    tool.chmod(0o755)
    out, said = local(bare, bare.work)
    assert out == [
        "True True False", out[1], "[('Tesla V100-SXM2-32GB', 2, 0.25)]", "0,1 None", "2 True", "True False None"]
    assert json.loads(out[1].replace("'", '"'))["gpu_utilization"] == 0.5
    assert said.count("gflowd does not answer") == 1 and "使用本机GPU" in said


def test_without_gflowd_and_without_gpus(bare):
    out, said = local(bare)
    assert out == ["False False False", "{}", "[]", "None None", "None False", "False False None"]


MANY = """#!/bin/sh
echo "0, GPU-aa, NVIDIA A100-SXM4-80GB, 81920, 4, 0, 33, 42.10"
echo "1, GPU-ab, NVIDIA GeForce RTX 3090, 24576, 4, 0, 33, 42.10"
echo "2, GPU-bb, NVIDIA L40S, 46068, 4, 0, 33, 42.10"
echo "3, GPU-bc, Tesla V100-SXM2-32GB, 32768, 4, 0, 33, 42.10"
echo "4, GPU-bd, Tesla V100-SXM2-16GB, 16160, 4, 0, 33, 42.10"
"""


@pytest.fixture
def driver(tmp_path, monkeypatch):
    """This machine has many GPUs, and who asks sees these."""
    tool = tmp_path / "nvidia-smi"
    tool.write_text(MANY)
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)


@pytest.mark.parametrize(("asked", "given"), [
    ("RTX3090", [1]), ("rtx 3090", [1]), ("A10", []), ("A100", [0]), ("L4", []), ("L40S", [2]), ("V100", [3, 4]), ("V100-16G", [4]),
    ("A10|A100 | RTX3090", [0, 1]), ("Any", [0, 1, 2, 3, 4]), ("nvidia", [0, 1, 2, 3, 4]), ("amd", []), ("garbage", []),
])
def test_a_model_is_what_the_daemon_takes_for_it(native, driver, asked, given):
    need = TrainingGPUConfig(gpu_type=asked).need()
    source, found = _local.LocalSource(), []
    for _ in given:
        found += source.allocate(need).indices
    assert found == given
    with pytest.raises(gflow.NoGpus):
        source.allocate(need)


@pytest.mark.parametrize(("visible", "given"), [
    ("3,4", [3, 4]), ("GPU-b", [2, 3, 4]), (" 1 ", [1]), ("GPU-aa,1", [0, 1]), ("", []), ("-1", []), ("NoDevFiles", []), ("MIG-GPU-aa/1/0", []),
])
def test_gpus_that_were_kept_from_this_program_are_left_alone(driver, monkeypatch, visible, given):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    source, one = _local.LocalSource(), TrainingGPUConfig().need()
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")  # as what it gives is set: that keeps nothing from it
    assert source.is_ready() is bool(given)
    assert sum(kind["available_gpus"] for kind in source.nodes("", 0)) == len(given)
    assert [gpu["index"] for node in source.monitoring()["nodes"] for gpu in node["gpus"]] == given
    assert [source.allocate(one).indices for _ in given] == [[index] for index in given]
    with pytest.raises(gflow.NoGpus):
        source.allocate(one)


COMES = """
import logging, os, sys
from gflow.manager import *
logging.basicConfig(format="%(levelname)s:%(message)s", level=logging.INFO)
manager, one = get_gpu_resource_manager(), TrainingGPUConfig()
node = manager.allocate_gpu_resources(one)
print(os.environ["CUDA_VISIBLE_DEVICES"], [n.gpu_type for n in manager.get_available_gpu_nodes()], flush=True)
sys.stdin.readline()
print([n.gpu_type for n in manager.get_available_gpu_nodes()])  # it holds one that gflowd does not know of
manager.cleanup_gpu_resources(node)
print([n.gpu_type for n in manager.get_available_gpu_nodes()])
manager.allocate_gpu_resources(one)
print(manager.newest().allocation_id)
"""


def test_gflowd_is_found_when_it_comes(bare):
    tool = bare.work / "nvidia-smi"
    tool.write_text(SMI)
    tool.chmod(0o755)
    environment = bare.environment | {"PYTHONPATH": str(SOURCE), "PATH": f"{bare.work}:{bare.environment['PATH']}"}
    with subprocess.Popen([sys.executable, "-c", COMES], env=environment, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE) as program:
        assert program.stdout.readline() == "0 ['Tesla V100-SXM2-32GB']\n"
        bare.up()
        out, said = program.communicate("\n", timeout=120)
    assert out.splitlines() == ["['Tesla V100-SXM2-32GB']", "['RTX3090']", "1"]
    assert said.count("使用本机GPU") == 1 and said.count("INFO:gflowd已启动: ") == 1


def test_a_server_that_was_named_is_not_replaced_by_this_machine(bare, monkeypatch):
    named = GPUResourceManager(gflow.Client(f"unix:{bare.socket}", patience=0))
    assert named.initialized is False
    with pytest.raises(gflow.Unreachable):
        named.allocate_gpu_resources(TrainingGPUConfig())


def test_before_gpus_are_known_it_is_not_initialized(bare, monkeypatch):
    class Ready:
        def is_ready(self):
            raise gflow.Unavailable({"status": 503, "detail": "no GPU answers"}, "GET")

    resources = GPUResourceManager()
    resources._source = Ready()
    assert resources.initialized is False


def test_gflowd_that_has_no_time_yet_is_not_waited_for(client, monkeypatch):
    """`initialized` is an answer now, whatever Retry-After says."""
    refused = gflow._http.Answer(None, 503, {"retry-after": "5"}, b'{"status": 503, "code": "unreachable", "detail": "no GPU answers"}')
    taken = client._driver._take

    def take(step):
        assert not isinstance(step, gflow._steps.Pause)
        return refused if getattr(step, "target", "").endswith("/gpu/health") else taken(step)

    monkeypatch.setattr(client._driver, "_take", take)
    assert GPUResourceManager(client).initialized is False
