# SPDX-License-Identifier: Apache-2.0
"""Trainings on the GPUs that gflow gives (docs/python.md)."""
