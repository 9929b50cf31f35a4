#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# How long jobs wait by who orders the queue, other schedulers' orders beside ours, in one run.
# GFLOW_LAB_DATA names the directory that holds the traces.
set -euo pipefail
exec gflow lab queue --data "${GFLOW_LAB_DATA:?has to name the directory that holds the traces}"
