# SPDX-License-Identifier: Apache-2.0
"""Training in JAX: one process, batches split among the devices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gflow.frameworks import jax as on_gpus
from gflow.frameworks._imports import required
from gflow.train._fit import Samples, TrainedModel, batches_of, inputs_for, mean

if TYPE_CHECKING:
    from gflow.frameworks._models import ModelConfig
    from gflow.train._run import TrainingRun

_DECAY_OF_MEAN, _DECAY_OF_SQUARES, _LEAST = 0.9, 0.999, 1e-8  # as Kingma and Ba have them


def fit(run: TrainingRun, config: ModelConfig, samples: Samples) -> TrainedModel:
    jax = required("jax")
    jnp = jax.numpy
    told = on_gpus.configure(run.told)
    model = on_gpus.JaxModel(config, told, run.seed)
    x, y = inputs_for(samples.x, config, "jax"), samples.y

    def loss_of(params: Any, x: Any, y: Any) -> Any:
        out = model.apply(params, x)
        if samples.classes is None:
            return jnp.mean((out - y) ** 2)
        return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(out), y[:, None], axis=1))

    gradient = jax.jit(jax.value_and_grad(loss_of))
    adam = jax.jit(_adam)
    params = model.params
    moments: Any = jax.tree.map(jnp.zeros_like, (params, params))
    losses, step = [], 0
    for epoch in range(run.epochs):
        of_epoch = []
        for parts in batches_of(len(x), run, epoch):
            of_step, together = [], None
            for part in parts:
                loss, slopes = gradient(params, model.batch(x[part]), model.batch(y[part]))
                slopes = jax.tree.map(lambda one: one / len(parts), slopes)  # noqa: B023
                together = slopes if together is None else jax.tree.map(jnp.add, together, slopes)
                of_step.append(float(loss))
            step += 1
            params, moments = adam(params, together, moments, step, run.learning_rate)
            of_epoch.append(mean(of_step))
        losses.append(mean(of_epoch))
        run.report(epoch + 1, loss=losses[-1])
    weights = [required("numpy").asarray(one) for one in jax.tree.leaves(params)]
    return TrainedModel("jax", config, weights, losses, list(told["devices"]), samples.classes)


def _adam(params: Any, gradient: Any, moments: Any, step: Any, rate: Any) -> tuple[Any, Any]:
    jax = required("jax")
    means = jax.tree.map(lambda m, g: _DECAY_OF_MEAN * m + (1 - _DECAY_OF_MEAN) * g, moments[0], gradient)
    squares = jax.tree.map(lambda s, g: _DECAY_OF_SQUARES * s + (1 - _DECAY_OF_SQUARES) * g * g, moments[1], gradient)

    def changed(p: Any, m: Any, s: Any) -> Any:
        m, s = m / (1 - _DECAY_OF_MEAN ** step), s / (1 - _DECAY_OF_SQUARES ** step)
        return p - rate * m / (jax.numpy.sqrt(s) + _LEAST)

    return jax.tree.map(changed, params, means, squares), (means, squares)


def rebuilt(trained: TrainedModel) -> Any:
    jax = required("jax")
    model = on_gpus.JaxModel(trained.config, {"devices": ["cpu:0"], "dtype": "float32"})
    shape = jax.tree.structure(model.params)
    model.params = jax.tree.unflatten(shape, [jax.numpy.asarray(one) for one in trained.weights])
    return model
