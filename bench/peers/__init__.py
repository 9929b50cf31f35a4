# SPDX-License-Identifier: Apache-2.0
"""Queues that machine_bench.py runs, each in a file: how it is started, given jobs, killed and asked what is left."""
