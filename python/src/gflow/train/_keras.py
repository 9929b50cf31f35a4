# SPDX-License-Identifier: Apache-2.0
"""The checkpoint of Keras, which is imported only here."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING, Any

import keras  # type: ignore[import-not-found,import-untyped,unused-ignore] # pyright: ignore[reportMissingImports]
import numpy  # type: ignore[import-not-found,import-untyped,unused-ignore] # pyright: ignore[reportMissingImports]

if TYPE_CHECKING:
    from gflow.train._files import Files
    from gflow.train.checkpoint import Told


def variables_of(model: Any) -> list[Any]:
    """Of a model that was compiled: its own, then those of its optimizer."""
    optimizer = getattr(model, "optimizer", None)
    if optimizer is None:
        raise ValueError("compile the model before its checkpoint is made: its optimizer is saved, too")
    if not optimizer.built:
        optimizer.build(model.trainable_variables)
    return [*model.variables, *optimizer.variables]


class Saves:
    """What of a model is saved, and from where it goes on."""

    def __init__(self, files: Files, model: Any) -> None:
        self._files = files
        self.epoch = 0
        files.tidy()
        found = files.newest()
        if found is not None:
            self._load(*found, variables_of(model))

    def _load(self, epoch: int, path: Path, into: list[Any]) -> None:
        with numpy.load(path, allow_pickle=False) as arrays:
            if len(arrays.files) != len(into):
                raise ValueError(f"'{path}' is of another model: it has {len(arrays.files)} variables, this one {len(into)}")
            for place, variable in enumerate(into):
                variable.assign(arrays[f"v{place}"])
        self.epoch = epoch

    def save(self, epoch: int, model: Any) -> None:
        """`model` as a callback has it: with JAX the variables of another reference are behind while it is trained."""
        arrays = {f"v{place}": keras.ops.convert_to_numpy(one) for place, one in enumerate(variables_of(model))}

        def write(path: Path) -> None:
            with open(path, "wb") as file:
                numpy.savez(file, **arrays)

        self._files.save(epoch, write)


def _close_behind_fit(model: Any, told: Told) -> None:
    """Keras tells callbacks of the end of a training only where it was a good one."""
    fit = model.fit
    if hasattr(fit, "told"):  # of a callback before
        fit.told.append(told)
        return

    @functools.wraps(fit)
    def fit_once(*arguments: Any, **named: Any) -> Any:
        vars(model).pop("fit", None)  # from here on it is that of its class
        try:
            return fit(*arguments, **named)
        finally:
            for one in reversed(several):
                one.close()

    several = [told]
    vars(fit_once)["told"] = several
    model.fit = fit_once


def make_callback(files: Files, model: Any, told: Told) -> Any:
    saves = Saves(files, model)
    _close_behind_fit(model, told)

    class Callback(keras.callbacks.Callback):  # type: ignore[misc,name-defined,unused-ignore]
        """`epoch`: how many are done."""

        def __init__(self) -> None:
            super().__init__()
            self.epoch = saves.epoch

        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            if not told.to_save:
                return
            told.to_save = False
            saves.save(self.epoch, self.model)
            self._end_if_told()

        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            self.epoch = epoch + 1
            saves.save(self.epoch, self.model)
            self._end_if_told()

        def on_train_end(self, logs: Any = None) -> None:
            told.close()

        def _end_if_told(self) -> None:
            if told.ended_by:
                told.close()
                raise SystemExit(128 + told.ended_by)

    return Callback()
