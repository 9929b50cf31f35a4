# SPDX-License-Identifier: Apache-2.0
"""TensorFlow on the GPUs of an allocation, which are simulated: what it is told, and that it computes."""

import os
import socket

import keras
import numpy as np
import pytest
import tensorflow as tf
from gflow.frameworks import get_tensorflow_gpu_integration, tensorflow
from gflow.frameworks._models import model_config
from gflow.manager import TrainingGPUConfig
from gflow.train import _tensorflow
from gflow.train._fit import fit
from gflow.train._run import TrainingRun
from gflow.train.engine import AlgorithmType, TrainingConfig, is_out_of_memory
from vibrations import line, signals

pytestmark = pytest.mark.devices("sim:2xV100+2xA100")
MLP = {"type": "mlp", "input_dim": 10, "hidden_units": [128, 64], "output_dim": 1}
TWO = {"devices": ["/CPU:0", "/CPU:1"], "strategy": "MirroredStrategy", "mixed_precision_policy": "float32", "memory_limit_mb": None}
ONE = {**TWO, "devices": ["/CPU:0"], "strategy": "OneDeviceStrategy"}


@pytest.fixture(scope="module", autouse=True)
def two_devices():
    """The CPU twice, before TensorFlow starts it."""
    (cpu,) = tf.config.list_physical_devices("CPU")
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)


def test_the_snippet_of_the_guide(session, client):
    told, names = session("2. TensorFlow集成")
    out, logged = told["2. TensorFlow集成"]
    assert out.startswith("TensorFlow GPU配置: {'devices': ['/CPU:0']")
    node = socket.gethostname()
    assert logged[0] == ["gpu_resource_manager", "INFO", f"GPU资源分配成功: {node} (1个GPU)"]
    assert ["gpu_resource_manager", "WARNING", "TensorFlow看不到分配的GPU (/GPU:0)，使用CPU训练"] in logged
    assert [one.shape for one in names["model"].get_weights()] == [(10, 128), (128,), (128, 64), (64,), (64, 1), (1,)]
    assert names["model"].predict(np.zeros((3, 10)), verbose=0).shape == (3, 1)
    assert len(client.allocations()) == 1 and os.environ["CUDA_VISIBLE_DEVICES"] == "0"
    names["tensorflow_gpu"].cleanup()
    assert client.allocations() == [] and "CUDA_VISIBLE_DEVICES" not in os.environ


def test_limit_and_growth_are_set_on_each_device_there_is(resources, monkeypatch, caplog):
    """What TensorFlow is told where it sees GPUs; there are none here to ask."""
    gpus = [tf.config.PhysicalDevice(f"/physical_device:GPU:{place}", "GPU") for place in range(2)]
    limits, growth = [], []
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: gpus)
    monkeypatch.setattr(tf.config, "set_logical_device_configuration",
                        lambda gpu, them: limits.append((gpu.name[-1], [one.memory_limit for one in them])))
    monkeypatch.setattr(tf.config.experimental, "set_memory_growth", lambda gpu, on: growth.append((gpu.name[-1], on)))
    config = TrainingGPUConfig(gpu_count=2, gpu_type="V100", gpu_memory_fraction=0.5)
    told = tensorflow.configure(get_tensorflow_gpu_integration(resources)._told(config))
    assert limits == [("0", [16384]), ("1", [16384])] and growth == []
    assert (told["devices"], told["strategy"], told["mixed_precision_policy"]) == (["/GPU:0", "/GPU:1"], "MirroredStrategy", "mixed_float16")
    tensorflow.configure({**told, "memory_limit_mb": None})
    assert growth == [("0", True), ("1", True)]

    def started(*_):
        raise RuntimeError("Virtual devices cannot be modified after being initialized")

    monkeypatch.setattr(tf.config, "set_logical_device_configuration", started)
    tensorflow.configure(told)
    assert "TensorFlow已经启动，显存设置未改变" in caplog.text


@pytest.mark.parametrize(("config", "batch", "out"), [
    (MLP, (4, 10), (4, 1)),
    ({"type": "cnn", "input_shape": [32, 1], "output_dim": 2, "dropout": 0.1, "hidden_units": [4]}, (4, 32, 1), (4, 2)),
    ({"type": "cnn", "input_shape": [3, 4, 3], "filters": [4, 5, 6], "activation": "gelu"}, (2, 3, 4, 3), (2, 1)),
])
def test_models(config, batch, out):
    described = model_config(config)
    model = tensorflow.build(described)
    assert tuple(model(np.zeros(batch, "float32")).shape) == out
    assert described.parameters(batch[-1]) == model.count_params()


def test_mixed_precision_computes_in_sixteen_bits_and_learns_in_thirty_two():
    model = tensorflow.build(model_config(MLP), "mixed_bfloat16")
    assert [(one.compute_dtype, one.variable_dtype) for one in model.layers] == [
        ("bfloat16", "float32"), ("bfloat16", "float32"), ("float32", "float32")]
    model.compile("adam", "mse")
    assert keras.config.dtype_policy().name == "float32" and model.dtype_policy.name == "mixed_bfloat16"
    losses = model.fit(*line(), epochs=3, verbose=0).history["loss"]
    assert losses[-1] < losses[0]


def test_copies_on_two_devices_and_batches_in_parts_learn_what_one_does():
    """MirroredStrategy over the CPU twice; in 16 bits, whose loss is scaled, about as much."""
    def trained(told, steps=1):
        params = {"model": {"type": "mlp", "hidden_units": [8]}}
        return fit(TrainingRun("t", "regression", line(), params, "tensorflow", told, epochs=2, batch_size=16, accumulation_steps=steps))

    alone, both, parts, mixed = trained(ONE), trained(TWO), trained(TWO, 4), trained({**ONE, "mixed_precision_policy": "mixed_float16"})
    assert both.devices == ["/CPU:0", "/CPU:1"] and both.losses[-1] < both.losses[0]
    for one, of_two, of_parts, of_mixed in zip(alone.weights, both.weights, parts.weights, mixed.weights):
        np.testing.assert_allclose(one, of_two, atol=1e-4)
        np.testing.assert_allclose(one, of_parts, atol=1e-4)
        np.testing.assert_allclose(one, of_mixed, atol=1e-2)
    assert not np.array_equal(alone.weights[0], mixed.weights[0])


def test_a_training_of_the_engine(engine, client):
    wanted = TrainingConfig("t", {
        "framework": "tensorflow", "epochs": 8, "batch_size": 16, "learning_rate": 0.03,
        "model": {"type": "cnn", "filters": [8], "hidden_units": [8], "kernel_size": 5}, "gpu_config": {"gpu_count": 2, "gpu_type": "A100"}})
    x, y = signals()
    result = engine.train(AlgorithmType.VIBRATION_ANALYSIS, wanted, {"x": x, "y": y})
    assert (result.gpu_count, result.value.classes) == (2, ["fast", "slow"]) and client.allocations() == []
    found = _tensorflow.rebuilt(result.value).predict(x[..., None], verbose=0).argmax(1)
    assert np.mean(np.array(result.value.classes)[found] == y) > 0.9


def test_its_shortage_of_memory_is_known():
    assert is_out_of_memory(tf.errors.ResourceExhaustedError(None, None, "OOM when allocating tensor"))
    assert not is_out_of_memory(tf.errors.InvalidArgumentError(None, None, "shapes differ"))
    assert keras.backend.backend() == "tensorflow"
