# SPDX-License-Identifier: Apache-2.0
"""PyTorch on the GPUs of an allocation, which are simulated: what it is told, and that it computes."""

import asyncio
import datetime
import os
import re
import socket
import subprocess
import sys

import numpy as np
import pytest
import torch
import vibrations
from conftest import ROOT
from gflow.frameworks import get_pytorch_gpu_integration, pytorch
from gflow.manager import TrainingGPUConfig
from gflow.train import checkpoint
from gflow.train._fit import fit
from gflow.train.engine import AlgorithmType, TrainingConfig, TrainingRun, is_out_of_memory
from vibrations import line, signals

pytestmark = pytest.mark.devices("sim:2xV100+2xA100")
MLP = {"type": "mlp", "input_dim": 10, "hidden_units": [128, 64], "output_dim": 1}
CPU = {"devices": ["cpu"], "amp": False, "distributed": False, "gpu_available": False, "world_size": 1}


def params(**algorithm):
    return TrainingConfig("t", {"epochs": 3, "batch_size": 16, "learning_rate": 0.01, **algorithm})


# The guide

@pytest.mark.devices("sim:4xV100+4xA100")
def test_the_snippet_of_the_guide(session, client):
    told, names = session("3. PyTorch集成")
    out, logged = told["3. PyTorch集成"]
    assert out.startswith("PyTorch GPU配置: {'devices': ['cpu']") and "'world_size': 2" in out
    node = socket.gethostname()
    assert logged[0] == ["gpu_resource_manager", "INFO", f"GPU资源分配成功: {node} (2个GPU)"]
    assert ["gpu_resource_manager", "WARNING", "PyTorch看不到分配的GPU (cuda:0, cuda:1)，使用CPU训练"] in logged
    assert [tuple(one.shape) for one in names["model"].parameters()] == [(128, 10), (128,), (64, 128), (64,), (1, 64), (1,)]
    assert names["model"](torch.zeros(3, 10)).shape == (3, 1)
    assert len(client.allocations()) == 1 and os.environ["CUDA_VISIBLE_DEVICES"] == "4,5"
    names["pytorch_gpu"].cleanup()
    assert client.allocations() == [] and "CUDA_VISIBLE_DEVICES" not in os.environ


@pytest.mark.devices("sim:4xV100+4xA100")
def test_the_snippet_of_the_training_engine(session, client):
    from backend.algorithm_engine.core import AlgorithmType as Kind
    from backend.algorithm_engine.core import TrainingConfig as Config

    told, names = session("与训练引擎集成", TrainingConfig=Config, AlgorithmType=Kind, data=signals())
    result, logged = names["result"], told["与训练引擎集成"][1]
    assert (result.name, result.algorithm, result.gpu_count) == ("gpu_training_example", "vibration_analysis", 2)
    assert len(result.value.losses) == 10 and result.value.losses[-1] < result.value.losses[0]
    assert [one[2].split("，")[0].split(" loss")[0] for one in logged if one[0] == "training"] == [
        "开始训练: gpu_training_example", *(f"第{epoch}轮" for epoch in range(1, 11)), "训练完成: gpu_training_example"]
    assert client.allocations() == []


def test_the_snippet_of_gradient_accumulation(session):
    class Loss(torch.nn.Module):
        """Of a line that is to go through the data."""

        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.zeros(3))

        def forward(self, x):
            return ((x @ self.weight - 1) ** 2).mean()

    data = torch.randn(32, 3, generator=torch.Generator().manual_seed(0))
    model, whole = Loss(), Loss()
    session("梯度累积", data=data, batch_size=4, model=model, optimizer=torch.optim.SGD(model.parameters(), lr=0.1))
    optimizer = torch.optim.SGD(whole.parameters(), lr=0.1)
    for half in data.chunk(2):  # four batches of four are one of sixteen
        optimizer.zero_grad()
        whole(half).backward()
        optimizer.step()
    torch.testing.assert_close(model.weight, whole.weight)


# Set-up

def test_the_allocation_of_the_manager_is_used(resources, client):
    config = TrainingGPUConfig(gpu_count=2, gpu_type="V100")
    node = resources.allocate_gpu_resources(config)
    integration = get_pytorch_gpu_integration(resources)
    told = integration.setup_pytorch_gpu(config)
    assert told["node_name"] == node and told["environment"]["CUDA_VISIBLE_DEVICES"] == "0,1"
    integration.create_pytorch_model_with_gpu(MLP, config)
    assert len(client.allocations()) == 1
    integration.cleanup()
    assert len(client.allocations()) == 1  # it is the manager's
    assert resources.cleanup_gpu_resources(node) is True


def test_without_gpus_it_is_the_cpu_which_is_said_once(resources, client, caplog):
    integration = get_pytorch_gpu_integration(resources)
    with client.gpus(4, set_environment=False):
        for _ in range(2):
            told = integration.setup_pytorch_gpu(TrainingGPUConfig())
            assert (told["devices"], told["node_name"], told["gpu_available"], told["amp"]) == (["cpu"], None, False, False)
    assert [one.message for one in caplog.records].count("GPU资源不足，使用CPU训练") == 1


def test_the_fraction_is_set_on_each_device_there_is(resources, monkeypatch):
    """What PyTorch is told where it sees GPUs; there are none here to ask."""
    set_to = []
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "set_per_process_memory_fraction", lambda part, place: set_to.append((place, part)))
    config = TrainingGPUConfig(gpu_count=2, gpu_type="V100", gpu_memory_fraction=0.8)
    told = get_pytorch_gpu_integration(resources).setup_pytorch_gpu(config)
    assert set_to == [(0, 0.8), (1, 0.8)]
    assert (told["devices"], told["amp"], told["gpu_available"], told["backend"]) == (["cuda:0", "cuda:1"], True, True, "nccl")
    set_to.clear()
    half = TrainingGPUConfig(gpu_type="A100", memory_gb=8.0, compute_ratio=0.5, gpu_memory_fraction=0.5)
    get_pytorch_gpu_integration(resources).setup_pytorch_gpu(half)
    assert set_to == [(0, 0.05)]  # half of 8 of 80 GB


# Models

@pytest.mark.parametrize(("config", "batch", "out"), [
    (MLP, (4, 10), (4, 1)),
    ({"type": "mlp", "input_shape": [2, 5], "output_dim": 3, "dropout": 0.1, "hidden_units": [7]}, (4, 2, 5), (4, 3)),
    ({"type": "cnn", "input_shape": [1, 32], "output_dim": 2}, (4, 1, 32), (4, 2)),
    ({"type": "cnn", "input_shape": [3, 8, 9], "filters": [4, 5, 6, 7, 8], "hidden_units": [9], "activation": "gelu"}, (2, 3, 8, 9), (2, 1)),
])
def test_models(config, batch, out):
    described = pytorch.model_config(config)
    model = pytorch.build(described)
    assert tuple(model(torch.zeros(batch)).shape) == out
    assert described.parameters(batch[1]) == sum(one.numel() for one in model.parameters())


@pytest.mark.parametrize(("config", "says"), [
    ({"type": "rnn"}, "no model type 'rnn': mlp, cnn"),
    ({"type": "mlp"}, "needs its input_dim"),
    ({"type": "cnn"}, "needs its input_shape"),
    ({"type": "cnn", "input_shape": [3]}, "has 1 sizes: 2 for signals, 3 for pictures"),
    ({"input_dim": 0}, "input_dim: 0 is not a whole number from 1 on"),
    ({"input_dim": 3, "hiden_units": [1]}, "no 'hiden_units'; 'hidden_units'"),
    ({"input_dim": 3, "activation": "step"}, "no activation 'step'"),
    ({"input_dim": 3, "dropout": 1}, "dropout 1.0"),
])
def test_what_is_no_model(config, says):
    with pytest.raises(ValueError, match=says):
        pytorch.model_config(config)


def test_steps_over_parts_are_those_over_the_whole():
    x, y = (torch.from_numpy(one) for one in line(16))

    def trained(parts):
        torch.manual_seed(0)
        model = pytorch.build(pytorch.model_config(MLP))
        steps = pytorch.TrainingSteps(model, torch.optim.SGD(model.parameters(), lr=0.1), CPU)
        loss = steps(lambda model, x, y: ((model(x)[:, 0] - y) ** 2).mean(), list(zip(x.chunk(parts), y.chunk(parts))))
        return loss, model[1].weight

    (loss, weight), (in_parts, weight_of_parts) = trained(1), trained(4)
    assert loss == pytest.approx(in_parts) and torch.allclose(weight, weight_of_parts, atol=1e-6)


def test_mixed_precision_computes_in_sixteen_bits_and_learns_in_thirty_two():
    x, y = (torch.from_numpy(one) for one in line())
    model = pytorch.build(pytorch.model_config(MLP))
    steps = pytorch.TrainingSteps(model, torch.optim.Adam(model.parameters(), lr=0.01), CPU, amp=True)
    types, losses = set(), []

    def loss_of(model, x, y):
        out = model(x)
        types.add(out.dtype)
        return ((out[:, 0].float() - y) ** 2).mean()

    losses = [steps(loss_of, [(x, y)]) for _ in range(20)]
    assert types == {torch.bfloat16} and losses[-1] < losses[0] / 2
    assert {one.dtype for one in model.parameters()} == {torch.float32}


# Trainings

def test_two_processes_learn_what_one_does(engine, client):
    """DistributedDataParallel over gloo: the same steps, each process with half of each batch."""
    gpus = {"gpu_count": 2, "gpu_type": "A100", "distributed_training": True}
    both = asyncio.run(engine.train_algorithm(AlgorithmType.VIBRATION_ANALYSIS, params(gpu_config=gpus), line()))
    assert both.gpu_count == 2 and both.value.losses[-1] < both.value.losses[0]
    alone = fit(TrainingRun("t", "regression", line(), told=CPU, epochs=3, batch_size=16, learning_rate=0.01))
    for one, other in zip(both.value.weights, alone.weights):
        np.testing.assert_allclose(one, other, atol=1e-4)
    assert client.allocations() == []


def test_the_examples_of_the_manual(session, client):
    """Both as they are printed; the second has learned to tell signals apart."""
    blocks = re.findall(r"^```python\n(.*?)^```", (ROOT / "docs/python.md").read_text(), re.MULTILINE | re.DOTALL)
    setup, training = (next(one for one in blocks if module in one) for module in ("import get_pytorch_gpu_integration", "gflow.train.engine"))
    x, y = signals(512)
    _, names = session(signals=x, labels=y, blocks=[["set-up", setup], ["training", training]])
    assert names["model"](torch.zeros(2, 10)).shape == (2, 1)
    names["pytorch_gpu"].cleanup()
    result = names["result"]
    assert (result.gpu_count, result.value.classes, len(result.value.losses)) == (2, ["fast", "slow"], 20)
    found = result.model(torch.from_numpy(x[:, None])).argmax(1)
    assert np.mean(np.array(result.value.classes)[found] == y) > 0.9 and client.allocations() == []


def test_real_shortages_of_memory_are_known_and_tried_again_in_parts(engine):
    with pytest.raises(RuntimeError) as short:
        torch.empty(1 << 62, dtype=torch.uint8)
    assert is_out_of_memory(short.value) and is_out_of_memory(torch.OutOfMemoryError("CUDA"))
    engine.register_algorithm("limited", vibrations.of_limited_memory)
    result = engine.train("limited", params(batch_size=64))
    assert result.value == 32 and result.adjustments == ["batch_size减为32，梯度累积2步"]


PROGRAM = """
import os
import torch
from gflow.frameworks import get_pytorch_gpu_integration
from gflow.manager import TrainingGPUConfig
config = TrainingGPUConfig(gpu_count=2, gpu_type="V100", distributed_training=True)
integration = get_pytorch_gpu_integration()
model = integration.create_pytorch_model_with_gpu({"input_dim": 4}, config)
rank = torch.distributed.get_rank()
model(torch.full((1, 4), float(rank))).sum().backward()
line = f"{rank} {type(model).__name__} {model.module[1].weight.grad.tolist()}\\n"
os.write(1, line.encode())  # whole: both write to one log
together = torch.distributed.barrier(async_op=True)  # neither leaves while the other is still busy with it
together.wait()  # kept: a thread of gloo that frees it aborts a Python before 3.14 that ends
torch.distributed.destroy_process_group()
"""


def test_started_by_torchrun_in_a_job_they_train_together_on_its_gpus(machine, client):
    script = machine.work / "together.py"
    script.write_text(PROGRAM)
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", script]
    job = client.submit(command, gpus="2(V100)", env={"PYTHONPATH": str(ROOT / "python/src"), "GFLOW_SOCKET": str(machine.socket)})
    assert job.wait()["status"] == "Finished", job.log()
    out = sorted(one for one in job.log().splitlines() if "DistributedDataParallel" in one)
    assert out == [f"{rank} DistributedDataParallel [[0.5, 0.5, 0.5, 0.5]]" for rank in (0, 1)]
    assert client.allocations() == []


RANDOM = """
import os, random, sys
import numpy, torch
from gflow.train import checkpoint
torch.distributed.init_process_group("gloo")
rank = torch.distributed.get_rank()
for seed in (random.seed, numpy.random.seed, torch.manual_seed): seed(rank)
model = torch.nn.Linear(1, 1)
saves = checkpoint.Checkpoint("saved", model=model)
if saves.resumed_from is None: saves.save()
line = f"{rank} {random.random()} {numpy.random.random()} {torch.rand(1).item()}\\n"
os.write(1, line.encode())
torch.distributed.barrier()  # others may be connecting still
torch.distributed.destroy_process_group()
"""


def test_each_process_goes_on_with_random_numbers_of_its_own(tmp_path):
    def drawn(processes):
        script = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={processes}", "random_numbers.py"]
        done = run(*script, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        return sorted(done.stdout.splitlines())

    (tmp_path / "random_numbers.py").write_text(RANDOM)
    first = drawn(2)
    assert [one.split()[0] for one in first] == ["0", "1"] and drawn(2) == first
    three = drawn(3)
    assert drawn(3) == three and len({number for one in three for number in one.split()[1:]}) == 9  # no two alike


class Sampler:
    def __init__(self, state=None):
        self.state = state

    def state_dict(self):
        return self.state

    def load_state_dict(self, state):
        self.state = state


def test_what_torch_does_not_read_again_is_told_when_it_is_saved(tmp_path):
    saves = checkpoint.Checkpoint(tmp_path, model=torch.nn.Linear(1, 1), sampler=Sampler({"at": datetime.datetime.now(datetime.timezone.utc)}))
    with pytest.raises(TypeError, match="the state of 'sampler' can be saved and not read again"):
        saves.save()
    saves.close()
    assert list(tmp_path.iterdir()) == []


def test_a_checkpoint_from_before_torch_was_used_is_read(tmp_path):
    (tmp_path / "before.py").write_text("""
import sys
from gflow.train import checkpoint
class Sampler:
    def state_dict(self): return {"at": 7}
    def load_state_dict(self, state): pass
saves = checkpoint.Checkpoint(sys.argv[1], sampler=Sampler())
saves.save()
assert "torch" not in sys.modules
""")
    assert run(str(tmp_path / "before.py"), str(tmp_path)).returncode == 0
    after = Sampler()
    checkpoint.Checkpoint(tmp_path, sampler=after).close()
    assert after.state == {"at": 7}


def test_one_process_of_a_distributed_training_says_how_it_is_several(resources, caplog):
    config = TrainingGPUConfig(gpu_count=2, gpu_type="V100", distributed_training=True)
    get_pytorch_gpu_integration(resources).create_pytorch_model_with_gpu(MLP, config)
    assert "torchrun" in caplog.text


def run(*words, cwd=None):
    return subprocess.run([sys.executable, *words], env={"PYTHONPATH": str(ROOT / "python/src")}, capture_output=True, text=True, check=False, cwd=cwd)


def test_what_is_not_installed_is_said():
    done = run("-S", "-c", "from gflow.frameworks.pytorch import *; build(model_config({'input_dim': 1}))")  # without site-packages
    assert "torch is not installed: pip install torch" in done.stderr


def test_frameworks_are_imported_when_they_are_used():
    done = run("-c", "import sys, gflow.frameworks, gflow.train.engine; print({'torch', 'tensorflow', 'jax', 'numpy'} & {*sys.modules})")
    assert (done.stdout, done.stderr) == ("set()\n", "")
