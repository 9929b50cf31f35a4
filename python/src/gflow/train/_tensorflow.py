# SPDX-License-Identifier: Apache-2.0
"""Training in TensorFlow: one process, with copies of the model on all devices."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gflow.frameworks import tensorflow
from gflow.frameworks._imports import required
from gflow.train._fit import Samples, TrainedModel, batches_of, inputs_for, mean

if TYPE_CHECKING:
    from gflow.frameworks._models import ModelConfig
    from gflow.train._run import TrainingRun


class _Steps:
    """Gradients are added up on each device, and exchanged once a step: what Keras accumulates it cannot on several."""

    def __init__(self, strategy: Any, model: Any, optimizer: Any, criterion: Any) -> None:
        tf = required("tensorflow")
        self._strategy, self._model, self._optimizer, self._criterion = strategy, model, optimizer, criterion
        self._copies = strategy.num_replicas_in_sync
        with strategy.scope():
            optimizer.build(model.trainable_variables)
            self._sums = [tf.Variable(tf.zeros(one.shape), trainable=False, synchronization=tf.VariableSynchronization.ON_READ,
                                      aggregation=tf.VariableAggregation.SUM) for one in model.trainable_variables]
        self._adding = tf.function(self._add, reduce_retracing=True)
        self._stepping = tf.function(self._step)

    def __call__(self, x: Any, y: Any, parts: Sequence[Any]) -> float:
        """One step over these parts of the samples. Their mean loss."""
        tf, np = required("tensorflow"), required("numpy")
        total = 0.0
        for part in parts:
            even = np.resize(part, math.ceil(len(part) / self._copies) * self._copies)
            total += float(self._adding(self._split(x, even), self._split(y, even), tf.constant(1 / len(parts) / self._copies)))
        self._stepping()
        return total

    def _split(self, values: Any, part: Any) -> Any:
        tf = required("tensorflow")
        return self._strategy.experimental_distribute_values_from_function(
            lambda its: tf.constant(values[part[its.replica_id_in_sync_group::self._copies]]))

    def _add(self, x: Any, y: Any, weight: Any) -> Any:
        tf = required("tensorflow")

        def of_copy(x: Any, y: Any) -> Any:
            with tf.GradientTape() as tape:
                loss = self._criterion(y, self._model(x, training=True)) * weight
                scaled = self._optimizer.scale_loss(loss)
            for total, one in zip(self._sums, tape.gradient(scaled, self._model.trainable_variables)):
                total.assign_add(one)
            return loss

        return self._strategy.reduce(tf.distribute.ReduceOp.SUM, self._strategy.run(of_copy, args=(x, y)), axis=None)

    def _step(self) -> None:
        tf = required("tensorflow")

        def of_copy() -> None:
            self._optimizer.apply([tf.identity(one) for one in self._sums])
            for one in self._sums:
                one.assign(tf.zeros_like(one))

        self._strategy.run(of_copy)


def fit(run: TrainingRun, config: ModelConfig, samples: Samples) -> TrainedModel:
    told = tensorflow.configure(run.told)
    keras = required("keras")
    keras.utils.set_random_seed(run.seed)
    strategy = tensorflow.strategy_of(told)
    with strategy.scope():
        model: Any = tensorflow.build(config, told["mixed_precision_policy"])
        optimizer = keras.optimizers.Adam(run.learning_rate)
        if told["mixed_precision_policy"] == "mixed_float16":
            optimizer = keras.optimizers.LossScaleOptimizer(optimizer)
        criterion = (keras.losses.MeanSquaredError() if samples.classes is None
                     else keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    steps = _Steps(strategy, model, optimizer, criterion)
    x, y = inputs_for(samples.x, config, "tensorflow"), samples.y
    losses = []
    for epoch in range(run.epochs):
        losses.append(mean([steps(x, y, parts) for parts in batches_of(len(x), run, epoch)]))
        run.report(epoch + 1, loss=losses[-1])
    return TrainedModel("tensorflow", config, model.get_weights(), losses, list(told["devices"]), samples.classes)


def rebuilt(trained: TrainedModel) -> Any:
    model: Any = tensorflow.build(trained.config)
    model.set_weights(trained.weights)
    return model
