#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# For a machine with a real NVIDIA GPU: builds gflow, compares what gflow-gpumon reads through NVML with
# what nvidia-smi prints, field by field, and takes the short tour (tools/demo.sh) on the real GPUs.
# Exits 0 if everything agrees, 1 if not, 77 if there is no NVIDIA GPU here.
# Usage: tools/gpu_check.sh [BUILD_DIR]    GFLOW_BIN_DIR=DIR takes the programs there and builds nothing.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=${1:-$root/build/gpu-check}

if ! command -v nvidia-smi >/dev/null || ! nvidia-smi -L >/dev/null 2>&1; then
  echo "gpu_check: nvidia-smi finds no GPU on this machine" >&2
  exit 77
fi

bin=${GFLOW_BIN_DIR:-}
if [[ -z $bin ]]; then
  cmake -S "$root" -B "$build" -DCMAKE_BUILD_TYPE=RelWithDebInfo -DGFLOW_TESTS=OFF
  cmake --build "$build" --parallel
  bin=$build/bin
fi

scratch=$(mktemp -d "${TMPDIR:-/tmp}/gflow-gpu-check.XXXXXX")
trap 'rm -rf "$scratch"' EXIT

# A process on the GPU, where python has a way to make one, gives the lists something to show. It says
# so through a pipe, which ends as well if it fails.
busy=""
stop_busy() { [[ -z $busy ]] || kill "$busy" 2>/dev/null || true; }
trap 'stop_busy; rm -rf "$scratch"' EXIT
mkfifo "$scratch/ready"
python3 -c 'import time, torch
x = torch.ones(1 << 26, device="cuda")
print("ready", flush=True)
time.sleep(600)' >"$scratch/ready" 2>/dev/null &
busy=$!
if ! read -r _ <"$scratch/ready"; then echo "gpu_check: no torch here to keep a GPU busy with"; fi

fields=pci.bus_id,name,uuid,driver_version,mig.mode.current,memory.total,memory.used,utilization.gpu
fields+=,temperature.gpu,power.draw,enforced.power.limit
"$bin/gflow-gpumon" --once >"$scratch/gpumon.json"
nvidia-smi --query-gpu="$fields" --format=csv,noheader,nounits >"$scratch/gpus.csv"
nvidia-smi --query-compute-apps=gpu_uuid,pid,used_memory --format=csv,noheader,nounits \
  >"$scratch/processes.csv"

compared=0
python3 - "$scratch" <<'PYTHON' || compared=1
import csv
import json
import pathlib
import sys

scratch = pathlib.Path(sys.argv[1])
report = json.loads((scratch / "gpumon.json").read_text())
MIB = 1 << 20
failures = 0


def rows(name):
    return list(csv.reader((scratch / name).open(), skipinitialspace=True))


def number(text):
    """A number, or None for [N/A], [Not Supported] and the like."""
    try:
        return float(text)
    except ValueError:
        return None


def scaled(value, unit):
    return None if value is None else value / unit


def show(gpu, field, ours, theirs, near):
    """One line; near is how far apart two readings of one instant may be, None if not at all."""
    global failures
    if near is None or ours is None or theirs is None:
        same = ours == theirs
    else:
        same = abs(ours - theirs) <= near
    failures += not same
    words = ["-" if value is None else str(value) for value in (ours, theirs)]
    print(f"{gpu:>3}  {field:<22} {words[0]:<42} {words[1]:<42} {'ok' if same else 'DIFFERENT'}")


def pci(text):
    domain, rest = text.lower().split(":", 1)
    return f"{int(domain, 16):04x}:{rest}"


if report["error"]:
    sys.exit(f"gflow-gpumon: {report['error']}")
print(f"{'GPU':>3}  {'field':<22} {'gflow-gpumon':<42} {'nvidia-smi':<42}")
theirs = sorted(rows("gpus.csv"), key=lambda row: pci(row[0]))
show("", "count", len(report["devices"]), len(theirs), None)
for index, (gpu, row) in enumerate(zip(report["devices"], theirs)):
    address, name, uuid, driver, mig, total, used, load, celsius, watts, limit = row
    show(index, "pci_address", gpu["pci_address"], pci(address), None)
    show(index, "name", gpu["name"], name, None)
    show(index, "uuid", gpu["uuid"], uuid, None)
    show(index, "driver", report["driver"], driver, None)
    show(index, "mig", gpu["mig"], {"Enabled": True, "Disabled": False}.get(mig), None)
    node = pathlib.Path(f"/sys/bus/pci/devices/{gpu['pci_address']}/numa_node")
    node = int(node.read_text()) if node.exists() else -1
    show(index, "numa_node (sysfs)", gpu["numa_node"], node if node >= 0 else None, None)
    # nvidia-smi rounds up to MiB; what moves with the load was read a moment later.
    show(index, "memory_total MiB", scaled(gpu["memory_total_bytes"], MIB), number(total), 1)
    show(index, "memory_used MiB", scaled(gpu["memory_used_bytes"], MIB), number(used), 64)
    show(index, "utilization_percent", gpu["utilization_percent"], number(load), 100)
    show(index, "temperature_celsius", gpu["temperature_celsius"], number(celsius), 5)
    show(index, "power W", scaled(gpu["power_milliwatts"], 1000), number(watts), 100)
    show(index, "power_limit W", scaled(gpu["power_limit_milliwatts"], 1000), number(limit), 0.01)
    wanted = {int(pid): number(size) for at, pid, size in rows("processes.csv") if at == uuid}
    found = {p["pid"]: scaled(p["memory_bytes"], MIB) for p in gpu["processes"]
             if p["kind"] == "compute"}
    show(index, "compute processes", sorted(found), sorted(wanted), None)
    for pid in sorted(found.keys() & wanted.keys()):
        show(index, f"  {pid} MiB", found[pid], wanted[pid], 64)
    for reading, why in gpu["missing"].items():
        print(f"{index:>3}  {reading:<22} not given: {why}")
print(f"{failures} different" if failures else "all the same")
sys.exit(1 if failures else 0)
PYTHON

stop_busy
toured=0
if [[ -x $bin/gflowd ]]; then GFLOW_BIN_DIR=$bin "$root/tools/demo.sh" || toured=1; fi
exit $((compared || toured))
