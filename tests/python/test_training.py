# SPDX-License-Identifier: Apache-2.0
"""AlgorithmTrainingEngine: GPUs for a training, what is done without them, and that none are left behind."""

import asyncio
import json
import os
import select
import signal
import subprocess
import sys
import threading

import gflow
import pytest
import trainings
from gflow.manager import GPUResourceManager, TrainingGPUConfig
from gflow.train.engine import (
    AlgorithmTrainingEngine, AlgorithmType, OutOfMemory, TrainingConfig, TrainingFailed, is_out_of_memory, log_to,
)
from package import ROOT, SOURCE

pytestmark = pytest.mark.devices("sim:2xV100+2xA100")


@pytest.fixture
def engine(client):
    made = AlgorithmTrainingEngine(GPUResourceManager(client))
    for name in ("seen", "wrong", "killed", "leaves", "waits", "needs_memory", "together", "second_fails", "reports"):
        made.register_algorithm(name, getattr(trainings, name))
    return made


@pytest.fixture
def gate(machine):
    path = machine.work / "gate"
    os.mkfifo(path)
    return path


def config(gpus=None, **params):
    return TrainingConfig("t", {**params, **({"gpu_config": gpus} if gpus is not None else {})})


def gone(gate):
    """Waits until nobody reads there any more."""
    poll = select.poll()
    poll.register(gate.fileno(), 0)
    assert poll.poll(60_000)[0][1] & select.POLLERR


def test_it_trains_on_gpus_of_its_own_and_gives_them_back(engine, client, monkeypatch, caplog):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    caplog.set_level("INFO")
    wanted = config({"gpu_count": 2, "gpu_type": "A100", "gpu_memory_fraction": 0.5}, epochs=3, mine=4)
    result = asyncio.run(engine.train_algorithm("seen", wanted, [1, 2]))
    assert (result.value["visible"], result.value["devices"]) == ("2,3", ["cuda:0", "cuda:1"])
    assert (result.value["data"], result.value["params"]) == ([1, 2], {"mine": 4})
    assert (result.value["told"]["memory_fraction"], result.value["told"]["amp"]) == (0.5, True)
    assert (result.name, result.algorithm, result.gpu_count, result.adjustments) == ("t", "seen", 2, [])
    assert result.node_name == client.machine()["nodes"][0]["name"]
    assert client.allocations() == [] and "CUDA_VISIBLE_DEVICES" not in os.environ
    assert [one.message.split("，")[0] for one in caplog.records if one.name == "training"] == ["开始训练: t", "训练完成: t"]


def test_several_at_once_have_gpus_each(engine):
    async def both():
        return await asyncio.gather(*(engine.train_algorithm("seen", config({"gpu_count": 2})) for _ in range(2)))

    assert sorted(one.value["visible"] for one in asyncio.run(both())) == ["0,1", "2,3"]


def test_without_gpus_it_trains_on_the_cpu_and_says_so(engine, client, caplog):
    for wish in (None, {"enabled": False}):
        result = engine.train("seen", config(wish))
        assert (result.node_name, result.gpu_count, result.value["visible"], result.value["devices"]) == (None, 0, "", ["cpu"])
    assert "CPU" not in caplog.text
    with client.gpus(4):
        for wish in ({"gpu_count": 2}, {"gpu_count": 9}, TrainingGPUConfig(gpu_type="H100")):
            result = engine.train("seen", config(wish))
            assert (result.value["devices"], result.adjustments) == (["cpu"], ["GPU资源不足，使用CPU训练"])
        with pytest.raises(gflow.NoGpus, match="fallback_to_cpu is off"):
            engine.train("seen", config({"gpu_count": 2, "fallback_to_cpu": False}))
    assert caplog.text.count("GPU资源不足，使用CPU训练") == 3


def test_where_gflowd_is_not_there(bare, caplog):
    engine = AlgorithmTrainingEngine(GPUResourceManager(gflow.Client(f"unix:{bare.socket}", patience=0)))
    engine.register_algorithm("seen", trainings.seen)
    assert engine.train("seen", config({"gpu_count": 1})).value["devices"] == ["cpu"]
    assert "GPU资源分配失败" in caplog.text and "使用CPU训练" in caplog.text
    with pytest.raises(gflow.Unreachable):
        engine.train("seen", config({"gpu_count": 1, "fallback_to_cpu": False}))


def test_more_memory_than_any_gpu_has_is_asked_for_with_less(engine, caplog):
    caplog.set_level("INFO")
    result = engine.train("seen", config({"gpu_type": "V100", "memory_gb": 40.0}))
    assert result.adjustments == ["memory_gb=32, gpu_memory_fraction=0.7"] and "调整配置后显存需求满足" in caplog.text
    assert result.value["told"]["memory_fraction"] == 0.7
    assert engine.train("seen", config({"gpu_type": "V100", "memory_gb": 90.0})).gpu_count == 0
    assert "显存需求无法满足，请使用更小的模型或更多GPU" in caplog.text


def test_what_goes_wrong_is_raised_and_leaves_no_gpus(engine, client):
    with pytest.raises(KeyError, match="k1") as raised:
        asyncio.run(engine.train_algorithm("wrong", config({"gpu_count": 2}, key="k1")))
    assert "in wrong" in str(raised.value.__cause__) and client.allocations() == []
    for name, how in (("killed", "by SIGKILL"), ("leaves", "with exit code 7")):
        with pytest.raises(TrainingFailed, match=how):
            engine.train(name, config({"gpu_count": 2}))
        assert client.allocations() == []


def test_short_memory_is_met_with_smaller_parts(engine, client, caplog):
    result = engine.train("needs_memory", config({"mixed_precision": False}, batch_size=32, room=8))
    assert result.value == 8 and result.gpu_count == 1
    assert result.adjustments == ["启用混合精度", "batch_size减为16，梯度累积2步", "batch_size减为8，梯度累积4步"]
    assert caplog.text.count("显存不足，调整后重试") == 3 and client.allocations() == []


def test_where_that_is_not_enough_the_cpu_is_taken(engine, client):
    result = engine.train("needs_memory", config({}, batch_size=2, not_on_gpu=True))
    assert (result.value, result.gpu_count, result.node_name) == (2, 0, None)
    assert result.adjustments == ["batch_size减为1，梯度累积2步", "显存不足，使用CPU训练"]
    with pytest.raises(OutOfMemory, match="Tried to allocate"):
        engine.train("needs_memory", config({"fallback_to_cpu": False}, batch_size=1, not_on_gpu=True))
    with pytest.raises(OutOfMemory):
        engine.train("needs_memory", config(None, batch_size=2, room=0))
    assert client.allocations() == []


def test_what_is_no_shortage_of_memory():
    assert is_out_of_memory(MemoryError()) and not is_out_of_memory(RuntimeError("shapes differ"))
    assert not is_out_of_memory(ValueError("out of memory")) and not is_out_of_memory(None)


def test_who_cancels_it_ends_it(engine, client, gate):
    async def cancelled():
        task = asyncio.ensure_future(engine.train_algorithm("waits", config({"gpu_count": 2}, path=gate)))
        with await asyncio.to_thread(open, gate, "w") as held:
            assert len(await asyncio.to_thread(client.allocations)) == 1
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            gone(held)

    asyncio.run(cancelled())
    assert client.allocations() == []


def test_gpus_that_are_taken_back_end_it(engine, client, machine, gate):
    raised = []

    def train():
        with pytest.raises(gflow.LeaseLost, match="cancelled") as lost:
            engine.train("waits", config({"gpu_count": 2}, path=gate))
        raised.append(lost.value.allocation_id)

    thread = threading.Thread(target=train)
    thread.start()
    with open(gate, "w") as held:
        machine.ok("gcancel", 1)
        gone(held)
    thread.join()
    assert raised == [1] and client.allocations() == []


def test_gflowd_is_killed_and_comes_back_meanwhile(engine, client, machine, gate):
    results = []
    thread = threading.Thread(target=lambda: results.append(engine.train("waits", config({"gpu_count": 2}, path=gate))))
    thread.start()
    with open(gate, "w") as held:
        machine.kill_daemon()
        machine.up()
        held.write("x")
    thread.join()
    assert (results[0].gpu_count, results[0].adjustments) == (2, []) and client.allocations() == []


@pytest.mark.parametrize("word", ["x", ""])
def test_gflowd_is_away_at_the_end(machine, gate, caplog, word):
    """What the training came to counts, a value or an exception; the GPUs can be given back later."""
    with gflow.Client(f"unix:{machine.socket}", patience=0) as client:
        manager = GPUResourceManager(client)
        engine = AlgorithmTrainingEngine(manager)
        engine.register_algorithm("reads", trainings.reads)
        outcomes = []

        def train():
            try:
                outcomes.append(engine.train("reads", config({"gpu_count": 2}, path=gate)).value)
            except EOFError as error:
                outcomes.append(str(error))

        thread = threading.Thread(target=train)
        thread.start()
        with open(gate, "w") as held:
            node = client.machine()["nodes"][0]["name"]
            machine.kill_daemon()
            held.write(word)
        thread.join()
        assert outcomes == [word or "nothing to read"]
        assert f"cleanup_gpu_resources('{node}', 2)" in caplog.text
        machine.up()
        assert len(client.allocations()) == 1 and manager.newest() is None
        assert manager.cleanup_gpu_resources(node, 2)


SCRIPT = """
import sys
import gflow, trainings
from gflow.manager import GPUResourceManager
from gflow.train.engine import AlgorithmTrainingEngine, TrainingConfig
engine = AlgorithmTrainingEngine(GPUResourceManager(gflow.Client("unix:" + sys.argv[1])))
engine.register_algorithm("waits", trainings.waits)
engine.train("waits", TrainingConfig("t", {"gpu_config": {"gpu_count": 2}, "path": sys.argv[2]}))
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_who_is_killed_leaves_neither_processes_nor_data_nor_gpus(client, machine, gate, number):
    kept = machine.work / "kept"
    kept.mkdir()
    environment = machine.environment | {"PYTHONPATH": f"{SOURCE}:{ROOT}/tests/python", "TMPDIR": str(kept)}
    with subprocess.Popen([sys.executable, "-c", SCRIPT, str(machine.socket), str(gate)], env=environment) as program:
        with open(gate, "w") as held:
            assert len(client.allocations()) == 1 and len(list(kept.iterdir())) == 1
            program.send_signal(number)
            gone(held)
        program.wait()
    assert list(kept.iterdir()) == []
    client.wait(1)
    assert client.allocations() == []


def test_numbers_of_frameworks_are_reported(engine, caplog):
    caplog.set_level("INFO")
    engine.train("reports", config())
    assert "第2轮 loss=0.25 accuracy=1" in caplog.text


def test_several_processes_train_together(engine, client, caplog, gate):
    caplog.set_level("INFO")
    wanted = {"gpu_count": 2, "gpu_type": "V100", "distributed_training": True}
    assert engine.train("together", config(wanted)).value == (0, 2, "0", "127.0.0.1", "2")
    assert caplog.text.count("第1轮 loss=0.5") == 1
    held = os.open(gate, os.O_RDWR)  # what the first waits for never comes
    with pytest.raises(ValueError, match="of the second"):
        engine.train("second_fails", config(wanted, path=gate))
    os.close(held)
    assert client.allocations() == []


def test_memory_strategies(engine):
    for strategy, fraction in (("conservative", 0.8), ("aggressive", 0.95)):
        told = engine.train("seen", config({"memory_strategy": strategy})).value["told"]
        assert told["memory_fraction"] == fraction
    told = engine.train("seen", config({"gpu_type": "V100", "memory_strategy": "dynamic", "model_memory_gb": 3.2})).value["told"]
    assert told["memory_fraction"] == pytest.approx(0.5)


@pytest.mark.parametrize(("params", "says"), [
    ({"gpu_config": {"gpu_cout": 1}}, "gpu_config has no 'gpu_cout'; 'gpu_count'"),
    ({"gpu_config": {"memory_strategy": "greedy"}}, "no memory strategy 'greedy'"),
    ({"gpu_config": {"gpu_count": 0}}, "gpu_count"),
    ({"framework": "caffe"}, "no framework 'caffe': pytorch, tensorflow, jax"),
    ({"epochs": 0}, "epochs: 0"),
    ({"batch_size": 1.5}, "batch_size: 1.5"),
])
def test_what_is_wrong_is_said(engine, client, params, says):
    with pytest.raises(ValueError, match=says):
        engine.train("seen", TrainingConfig("t", params))
    assert client.allocations() == []


def test_an_algorithm_that_is_not_there(engine):
    with pytest.raises(ValueError, match="no algorithm 'forest': vibration_analysis.*register_algorithm"):
        engine.train("forest", config())
    engine.register_algorithm(AlgorithmType.REGRESSION, trainings.seen)
    assert engine.train(AlgorithmType.REGRESSION, config()).value["data"] is None


def test_the_logs_of_the_guide(engine, tmp_path):
    for _ in range(2):
        log_to(tmp_path / "logs")
    engine.train("seen", config({"gpu_count": 1}))
    (training, manager) = ((tmp_path / "logs" / f"{name}.log").read_text() for name in ("training", "gpu_resource_manager"))
    assert training.count("开始训练: t") == 1 and manager.count("GPU资源分配成功") == 1


def test_in_a_job_its_own_gpus_are_taken(machine, client):
    script = machine.work / "own.py"
    script.write_text("""
import json, os
from gflow.manager import *
m, two, one = get_gpu_resource_manager(), TrainingGPUConfig(gpu_count=2, distributed_training=True), TrainingGPUConfig()
said = [m.allocate_gpu_resources(one), os.environ["CUDA_VISIBLE_DEVICES"], m.allocate_gpu_resources(two)]
m.cleanup_gpu_resources(said[0])
said += [os.environ["CUDA_VISIBLE_DEVICES"], m.allocate_gpu_resources(two), m.setup_distributed_training(two)["world_size"]]
print(json.dumps(said))
""")
    job = client.submit([sys.executable, script], gpus="2(A100)", env={"PYTHONPATH": str(SOURCE), "GFLOW_SOCKET": str(machine.socket)})
    job.result()
    node = client.machine()["nodes"][0]["name"]
    out = json.loads(job.log().splitlines()[-1])
    assert out == [node, "2", node, "2,3", node, 2]  # for the second there were others, as one was taken
