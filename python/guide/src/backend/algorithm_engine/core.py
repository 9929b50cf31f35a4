# SPDX-License-Identifier: Apache-2.0
"""The path by which the guide imports gflow.train.engine."""

from __future__ import annotations

from gflow.train.engine import AlgorithmTrainingEngine, AlgorithmType, TrainingConfig, TrainingResult

__all__ = ["AlgorithmTrainingEngine", "AlgorithmType", "TrainingConfig", "TrainingResult"]
