# SPDX-License-Identifier: Apache-2.0
"""AlgorithmTrainingEngine: GPUs, a training in processes of its own, and what is done when either is not to be had."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import difflib
import logging
import os
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Optional, Union, cast

from gflow._terms import framework_terms
from gflow.errors import GflowError, LeaseLost, NoGpus, OptionError, UsageError
from gflow.manager import GPUAllocation, GPUResourceManager, TrainingGPUConfig, get_gpu_resource_manager
from gflow.train._fit import FRAMEWORKS, TrainedModel, fit, model_for, samples_of
from gflow.train._processes import OutOfMemory, Processes, TrainingFailed, TrainingStopped
from gflow.train._run import Algorithm, TrainingRun, is_out_of_memory

__all__ = [
    "AlgorithmTrainingEngine", "AlgorithmType", "OutOfMemory", "TrainedModel", "TrainingConfig", "TrainingFailed", "TrainingResult",
    "TrainingRun", "TrainingStopped", "is_out_of_memory", "log_to",
]

logger = logging.getLogger("training")

_LESS_MEMORY, _LESS_FRACTION = 0.8, 0.7  # what is tried where as much was asked for as no GPU has
_RUN_PARAMS = ("framework", "epochs", "batch_size", "accumulation_steps", "learning_rate", "seed")


class AlgorithmType(Enum):
    """What is to be found: for vibrations, what the labels are; without labels, the signal itself."""

    VIBRATION_ANALYSIS = "vibration_analysis"
    CLASSIFICATION = "classification"
    REGRESSION = "regression"


@dataclass
class TrainingConfig:
    """`algorithm_params`: `gpu_config` (as TrainingGPUConfig, with `enabled`, `fallback_to_cpu`, `memory_strategy`), `model`,
    `framework`, `epochs`, `batch_size`, `accumulation_steps`, `learning_rate`, `seed`, and what an algorithm of one's own takes."""

    name: str = "training"
    algorithm_params: Mapping[str, Any] = field(default_factory=dict)


@dataclass
class TrainingResult:
    name: str
    algorithm: str
    value: Any
    """What the algorithm returned: a TrainedModel, unless it is one of one's own."""
    node_name: Optional[str]
    """None of a training on the CPU."""
    gpu_count: int
    adjustments: list[str]
    """What was changed after memory was short, or GPUs."""
    training_time: float

    @property
    def model(self) -> Any:
        """The trained model in its framework, on the CPU."""
        return cast("TrainedModel", self.value).build()


class AlgorithmTrainingEngine:
    """Each training runs in processes of its own, which see its GPUs and no other; they are ended and the GPUs given back
    whatever becomes of it or of this process."""

    def __init__(self, manager: Optional[GPUResourceManager] = None) -> None:
        self._manager = manager
        self._algorithms: dict[str, Algorithm] = {one.value: fit for one in AlgorithmType}

    def register_algorithm(self, algorithm: Union[AlgorithmType, str], function: Algorithm) -> None:
        """`function(run)` trains, in the process of the training, and what it returns comes back as the result's `value`."""
        self._algorithms[_name_of(algorithm)] = function

    async def train_algorithm(self, algorithm: Union[AlgorithmType, str], config: TrainingConfig, data: Any = None) -> TrainingResult:
        """Errors: what the algorithm raises; OutOfMemory, TrainingFailed, LeaseLost; NoGpus where the CPU would not do; ValueError
        of a configuration that is none. Who cancels it ends it."""
        training = self._training(algorithm, config, data)
        done = asyncio.ensure_future(asyncio.to_thread(training.run))
        try:
            return await asyncio.shield(done)
        except asyncio.CancelledError:
            training.stop()
            with contextlib.suppress(Exception):
                await done
            raise

    def train(self, algorithm: Union[AlgorithmType, str], config: TrainingConfig, data: Any = None) -> TrainingResult:
        """The same, waited for."""
        training = self._training(algorithm, config, data)
        try:
            return training.run()
        finally:
            training.stop()

    def _training(self, algorithm: Union[AlgorithmType, str], config: TrainingConfig, data: Any) -> _Training:
        name = _name_of(algorithm)
        function = self._algorithms.get(name)
        if function is None:
            raise ValueError(f"there is no algorithm '{name}': {', '.join(self._algorithms)}; register_algorithm() adds one")
        return _Training(self._manager or get_gpu_resource_manager(), function, _run_of(name, config, data),
                         _wish_of(config.algorithm_params.get("gpu_config")))


def log_to(directory: Union[str, os.PathLike[str]] = "logs") -> None:
    """Writes training.log and gpu_resource_manager.log there, besides what logging does else."""
    os.makedirs(directory, exist_ok=True)
    for name in ("training", "gpu_resource_manager"):
        path = os.path.abspath(os.path.join(directory, f"{name}.log"))
        its = logging.getLogger(name)
        if any(isinstance(one, logging.FileHandler) and one.baseFilename == path for one in its.handlers):
            continue
        handler = logging.FileHandler(path, encoding="utf-8")
        handler.setFormatter(logging.Formatter("%(asctime)s %(name)s %(levelname)s %(message)s"))
        its.addHandler(handler)
        if its.getEffectiveLevel() > logging.INFO:
            its.setLevel(logging.INFO)


@dataclass
class _Wish:
    """What a training wants of GPUs; `gpus` is its own, and changed where less will do."""

    gpus: Optional[TrainingGPUConfig]
    fallback_to_cpu: bool = True
    memory_strategy: Optional[str] = None
    model_memory_gb: Optional[float] = None


def _name_of(algorithm: Union[AlgorithmType, str]) -> str:
    return algorithm.value if isinstance(algorithm, AlgorithmType) else algorithm


def _run_of(algorithm: str, config: TrainingConfig, data: Any) -> TrainingRun:
    params = {name: value for name, value in config.algorithm_params.items() if name != "gpu_config"}
    run = TrainingRun(config.name, algorithm, data, params, **{name: params.pop(name) for name in _RUN_PARAMS if name in params})
    if run.framework not in FRAMEWORKS:
        raise ValueError(f"there is no framework '{run.framework}': {', '.join(FRAMEWORKS)}")
    for name in ("epochs", "batch_size", "accumulation_steps"):
        if not isinstance(getattr(run, name), int) or getattr(run, name) < 1:
            raise ValueError(f"{name}: {getattr(run, name)!r} is not a whole number from 1 on")
    return run


def _wish_of(given: Union[Mapping[str, Any], TrainingGPUConfig, None]) -> _Wish:
    if isinstance(given, TrainingGPUConfig):
        return _Wish(dataclasses.replace(given))
    values: dict[str, Any] = {"enabled": False} if given is None else {**given}
    of_wish = [one.name for one in dataclasses.fields(_Wish) if one.name != "gpus"]
    known = ["enabled", *of_wish, *(one.name for one in dataclasses.fields(TrainingGPUConfig))]
    for name in values:
        if name not in known:
            near = difflib.get_close_matches(str(name), known, 1)
            raise ValueError(f"gpu_config has no '{name}'" + (f"; '{near[0]}'?" if near else f": {', '.join(known)}"))
    is_enabled = values.pop("enabled", True)
    wish = _Wish(None, **{name: values.pop(name) for name in of_wish if name in values})
    wish.gpus = TrainingGPUConfig(**values) if is_enabled else None
    return wish


class _Training:
    """One of them, on a thread; `stop()` comes from another."""

    def __init__(self, manager: GPUResourceManager, function: Algorithm, run: TrainingRun, wish: _Wish) -> None:
        self._manager = manager
        self._function = function
        self._run = run
        self._wish = wish
        self._lock = threading.Lock()
        self._processes: Optional[Processes] = None
        self._is_stopped = False
        self._adjustments: list[str] = []

    def stop(self) -> None:
        with self._lock:
            self._is_stopped = True
            if self._processes is not None:
                self._processes.stop()

    def run(self) -> TrainingResult:
        began = time.monotonic()
        logger.info("开始训练: %s", self._run.name)
        allocation = self._allocation() if self._wish.gpus is not None else None
        try:
            value, trained_on = self._tried(allocation)
        finally:
            if allocation is not None:
                self._give_back(allocation)
        if trained_on is None:  # there are no GPUs, or they have no memory for it and others may have them
            value = self._adjusting(None)
        seconds = time.monotonic() - began
        logger.info("训练完成: %s，耗时%.2f秒", self._run.name, seconds)
        node, count = (trained_on.node, trained_on.count) if trained_on is not None else (None, 0)
        return TrainingResult(self._run.name, self._run.algorithm, value, node, count, self._adjustments, seconds)

    def _allocation(self) -> Optional[GPUAllocation]:
        """None where the CPU will do."""
        gpus = self._wish.gpus
        assert gpus is not None
        try:
            self._choose_memory(gpus)
            allocation = self._manager.hold(gpus, is_seen=False) if self._can_be_met(gpus) else None
        except (UsageError, OptionError):
            raise
        except GflowError as error:
            logger.error("GPU资源分配失败: %s", error)
            if not self._wish.fallback_to_cpu:
                raise
            allocation = None
        if allocation is None and not self._wish.fallback_to_cpu:
            raise NoGpus(f"{gpus.gpu_count} GPUs for '{self._run.name}' are not to be had now, and fallback_to_cpu is off")
        if allocation is None:
            logger.warning("GPU资源不足，使用CPU训练")
            self._adjustments.append("GPU资源不足，使用CPU训练")
        return allocation

    def _give_back(self, allocation: GPUAllocation) -> None:
        """What came of the training counts, also where gflowd cannot be told now that it is over."""
        try:
            self._manager.give_back(allocation)
        except GflowError as error:
            logger.error("GPU资源释放失败: %s. cleanup_gpu_resources(%r, %d) 可再次释放，本进程结束时自动释放",
                         error, allocation.node, allocation.count)

    def _choose_memory(self, gpus: TrainingGPUConfig) -> None:
        wish = self._wish
        if wish.memory_strategy == "dynamic" and wish.model_memory_gb is None:
            samples = samples_of(self._run.data, self._run.algorithm)
            model = model_for(self._run.params.get("model"), samples, self._run.framework)
            wish.model_memory_gb = model.memory_gb(model.input_shape[0 if self._run.framework == "pytorch" else -1])
        if wish.memory_strategy is not None:
            self._manager.set_memory_strategy(gpus, wish.memory_strategy, wish.model_memory_gb)

    def _can_be_met(self, gpus: TrainingGPUConfig) -> bool:
        """Here, now or later; with less memory where that is what is missing."""
        if self._manager.validate_gpu_requirements(gpus):
            return True
        if gpus.memory_gb is None:
            return False
        gpus.memory_gb *= _LESS_MEMORY
        gpus.gpu_memory_fraction = min(gpus.gpu_memory_fraction, _LESS_FRACTION)
        if self._manager.validate_gpu_requirements(gpus):
            logger.info("调整配置后显存需求满足")
            self._adjustments.append(f"memory_gb={gpus.memory_gb:g}, gpu_memory_fraction={gpus.gpu_memory_fraction:g}")
            return True
        logger.error("显存需求无法满足，请使用更小的模型或更多GPU")
        return False

    def _tried(self, allocation: Optional[GPUAllocation]) -> tuple[Any, Optional[GPUAllocation]]:
        """What came of it on the GPUs, and these; None and None where it is still to be tried on the CPU."""
        if allocation is None:
            return None, None
        allocation.on_lost(lambda why: self._end_processes())
        try:
            return self._adjusting(allocation), allocation
        except OutOfMemory:
            if not self._wish.fallback_to_cpu:
                raise
            logger.warning("显存不足，使用CPU训练")
            self._adjustments.append("显存不足，使用CPU训练")
            return None, None
        except TrainingStopped:
            if allocation.lost is not None:
                raise LeaseLost(allocation.allocation_id or 0, allocation.lost) from None
            raise

    def _end_processes(self) -> None:
        with self._lock:
            if self._processes is not None:
                self._processes.stop()

    def _adjusting(self, allocation: Optional[GPUAllocation]) -> Any:
        """Tries until there is memory for it, each time with less. Errors: OutOfMemory."""
        config = dataclasses.replace(self._wish.gpus or TrainingGPUConfig())
        run = self._run
        while True:
            try:
                return self._once(run, config, allocation)
            except OutOfMemory:
                if allocation is not None and not config.mixed_precision:
                    config.mixed_precision = True
                    self._note("启用混合精度")
                elif run.part_size > 1:
                    run = dataclasses.replace(run, accumulation_steps=run.accumulation_steps * 2)
                    self._note(f"batch_size减为{run.part_size}，梯度累积{run.accumulation_steps}步")
                else:
                    raise

    def _note(self, change: str) -> None:
        logger.warning("显存不足，调整后重试: %s", change)
        self._adjustments.append(change)

    def _once(self, run: TrainingRun, config: TrainingGPUConfig, allocation: Optional[GPUAllocation]) -> Any:
        terms = "tensorflow" if run.framework == "tensorflow" else "pytorch"
        if allocation is None:
            told = {**framework_terms(terms, dataclasses.replace(config, distributed_training=False), 0),
                    "environment": {"CUDA_VISIBLE_DEVICES": ""}}
        else:
            told = allocation.setup(terms, config)
        run = dataclasses.replace(run, told=told, world_size=told["world_size"] if run.framework == "pytorch" else 1)
        processes = Processes(self._function, run, told["environment"])
        with self._lock:
            self._processes = processes
            if self._is_stopped or (allocation is not None and allocation.lost is not None):
                processes.stop()
        return processes.outcome(lambda epoch, values: logger.info("第%d轮 %s", epoch, " ".join(
            f"{name}={value:.6g}" for name, value in values.items())))
