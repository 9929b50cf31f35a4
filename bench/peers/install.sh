#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs the peers of machine_bench.py: Debian packages with apt (as root), the others, pinned, into a cache of this user.
# One that cannot be had is named and left out; the bench says so in its row.
#
#   install.sh [NAME]...: task-spooler slurm runqd pueue; without a name all of them
set -uo pipefail

readonly CACHE="${XDG_CACHE_HOME:-$HOME/.cache}/gflow-bench"
readonly RUNQD=0.4.18
readonly PUEUE=4.0.4

debian() { DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "$@" >/dev/null; }

install_peer() {
  case $1 in
    task-spooler) debian task-spooler ;;
    slurm) debian slurmctld slurmd slurm-client munge ;;
    runqd) debian tmux python3-venv && python3 -m venv "$CACHE/runqd" && "$CACHE/runqd/bin/pip" install -q "runqd==$RUNQD" ;;
    pueue) cargo install -q --locked pueue --version "$PUEUE" --root "$CACHE/pueue" ;;  # built for some minutes
    *) return 2 ;;
  esac
}

if [[ $# -eq 0 ]]; then set -- task-spooler slurm runqd pueue; fi
failed=0
for name in "$@"; do
  if install_peer "$name"; then
    echo "$name: installed"
  else
    echo "$name: could not be installed" >&2
    failed=1
  fi
done
exit "$failed"
