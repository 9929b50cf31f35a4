# SPDX-License-Identifier: Apache-2.0
"""JAX on the GPUs of an allocation, which are simulated: what it is told, and that it computes."""

import os

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=2"  # the CPU twice; read when JAX starts

import jax  # noqa: E402
import numpy as np  # noqa: E402
import pytest  # noqa: E402
from gflow.frameworks import get_jax_gpu_integration  # noqa: E402
from gflow.frameworks.jax import JaxModel, configure, model_config  # noqa: E402
from gflow.manager import TrainingGPUConfig  # noqa: E402
from gflow.train import _jax  # noqa: E402
from gflow.train._fit import fit, model_for, samples_of  # noqa: E402
from gflow.train._run import TrainingRun  # noqa: E402
from gflow.train.engine import AlgorithmType, TrainingConfig  # noqa: E402
from vibrations import line, signals  # noqa: E402

pytestmark = pytest.mark.devices("sim:2xV100+2xA100")
MLP = {"type": "mlp", "input_dim": 10, "hidden_units": [128, 64], "output_dim": 1}
ONE = {"devices": ["cpu:0"], "dtype": "float32"}
LIMITS = ("XLA_PYTHON_CLIENT_MEM_FRACTION", "XLA_PYTHON_CLIENT_PREALLOCATE")


@pytest.fixture(autouse=True)
def limits(monkeypatch):
    for name in LIMITS:
        monkeypatch.setenv(name, "")  # and put back
        monkeypatch.delenv(name)


def test_a_model_on_the_gpus_of_an_allocation(resources, client, caplog):
    config = TrainingGPUConfig(gpu_count=2, gpu_type="V100", gpu_memory_fraction=0.8)
    integration = get_jax_gpu_integration(resources)
    told = integration.setup_jax_gpu(config)
    assert (told["devices"], told["gpu_available"], told["dtype"]) == (["cpu:0"], False, "float32")
    assert "JAX看不到分配的GPU (cuda:0, cuda:1)，使用CPU训练" in caplog.text
    assert [os.environ[name] for name in LIMITS] == ["0.8000", "false"] and os.environ["CUDA_VISIBLE_DEVICES"] == "0,1"
    model = integration.create_jax_model_with_gpu(MLP, config)
    assert model(np.zeros((3, 10))).shape == (3, 1) and len(client.allocations()) == 1
    integration.cleanup()
    assert client.allocations() == []


def test_without_gpus_it_is_the_cpu(resources, client, caplog):
    with client.gpus(4, set_environment=False):
        told = get_jax_gpu_integration(resources).setup_jax_gpu(TrainingGPUConfig())
    assert told["devices"] == ["cpu:0"] and told["node_name"] is None and "GPU资源不足，使用CPU训练" in caplog.text
    assert LIMITS[0] not in os.environ


@pytest.mark.parametrize(("config", "batch", "out"), [
    (MLP, (4, 10), (4, 1)),
    ({"type": "mlp", "input_shape": [2, 5], "output_dim": 3, "activation": "tanh"}, (4, 2, 5), (4, 3)),
    ({"type": "cnn", "input_shape": [32, 1], "output_dim": 2, "hidden_units": [4]}, (4, 32, 1), (4, 2)),
    ({"type": "cnn", "input_shape": [3, 4, 3], "filters": [4, 5, 6], "activation": "gelu"}, (2, 3, 4, 3), (2, 1)),
])
def test_models(config, batch, out):
    described = model_config(config)
    model = JaxModel(described, ONE)
    assert model(np.ones(batch, "float32")).shape == out
    assert described.parameters(batch[-1]) == sum(one.size for one in jax.tree.leaves(model.params))


def test_mixed_precision_computes_in_sixteen_bits_and_learns_in_thirty_two():
    exact, mixed = (JaxModel(model_config(MLP), {**ONE, "dtype": dtype}) for dtype in ("float32", "bfloat16"))
    x = line()[0]
    assert {str(one.dtype) for one in jax.tree.leaves(mixed.params)} == {"float32"} and mixed(x).dtype == "float32"
    assert "bf16" in str(jax.make_jaxpr(mixed.apply)(mixed.params, x))
    np.testing.assert_allclose(exact(x), mixed(x), atol=0.2)
    assert not np.array_equal(exact(x), mixed(x))


def test_batches_split_among_devices_and_in_parts_are_learned_as_whole_ones():
    told = configure({"devices": ["cpu"], "distributed": True, "amp": False, "memory_fraction": 1.0})
    assert told["devices"] == ["cpu:0", "cpu:1"]
    model = JaxModel(model_config(MLP), told)
    assert len(model.batch(np.zeros((4, 10))).sharding.device_set) == 2
    assert not model.batch(np.zeros((4, 10))).sharding.is_fully_replicated and model.batch(np.zeros((3, 10))).sharding.is_fully_replicated

    def trained(steps, **told):
        told = {"devices": ["cpu"], "distributed": False, "amp": False, "memory_fraction": 1.0, **told}
        return fit(TrainingRun("t", "regression", line(), {}, "jax", told, epochs=3, batch_size=16, accumulation_steps=steps))

    alone, both, parts = trained(1), trained(1, distributed=True), trained(4)
    assert alone.losses[-1] < alone.losses[0] and both.devices == ["cpu:0", "cpu:1"]
    for other in (both, parts):
        for one, same in zip(alone.weights, other.weights):
            np.testing.assert_allclose(one, same, atol=1e-3)


def test_a_training_of_the_engine(engine, client):
    x, y = signals()
    wanted = TrainingConfig("t", {
        "framework": "jax", "epochs": 12, "batch_size": 16, "learning_rate": 0.03,
        "model": {"type": "cnn", "filters": [8], "hidden_units": [8], "kernel_size": 5}, "gpu_config": {"gpu_type": "A100", "memory_strategy": "dynamic"}})
    result = engine.train(AlgorithmType.VIBRATION_ANALYSIS, wanted, (x, y))
    assert (result.gpu_count, result.value.framework) == (1, "jax") and client.allocations() == []
    found = np.asarray(_jax.rebuilt(result.value)(x[..., None])).argmax(1)
    assert np.mean(np.array(result.value.classes)[found] == y) > 0.9
    assert result.model.config == result.value.config


def test_signals_without_labels_are_learned_to_be_given_back():
    samples = samples_of(signals()[0], "vibration_analysis")
    config = model_for({"type": "mlp", "hidden_units": [4]}, samples, "jax")
    assert (config.input_shape, config.output_dim, samples.classes) == ((32,), 32, None)
    assert model_for({"type": "cnn"}, samples, "jax").input_shape == (32, 1)
    assert model_for({"type": "cnn"}, samples, "pytorch").input_shape == (1, 32)


@pytest.mark.parametrize(("data", "says"), [
    (None, "no data"), ({"a": 1}, "have a: x and y"), (([[1]], [1, 2]), "1 samples and 2 labels"), ([], "no samples"),
])
def test_what_are_no_data(data, says):
    with pytest.raises(ValueError, match=says):
        samples_of(data, "regression")
