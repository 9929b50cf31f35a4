#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A short tour of gflow on a daemon of its own: home, socket and logs are in a folder that is gone
# afterwards. Run it as `./dev demo`. Uses the GPUs of this machine, or simulated ones.
# shellcheck disable=SC2016  # commands are shown as typed before they are run
set -euo pipefail

bin=${GFLOW_BIN_DIR:?run this as ./dev demo}
PATH="$bin:$PATH"
home=$(mktemp -d "${TMPDIR:-/tmp}/gflow-demo.XXXXXX")
export HOME="$home" XDG_RUNTIME_DIR="$home/run" GFLOW_API__LISTEN="127.0.0.1:0"  # any port that is free
unset GFLOW_CONFIG XDG_CONFIG_HOME XDG_DATA_HOME XDG_STATE_HOME XDG_CACHE_HOME
mkdir -m 700 "$XDG_RUNTIME_DIR"

clean_up() {
  local code=$?
  trap - EXIT
  trap '' INT TERM
  # Jobs outlive the daemon, so they are ended first; only if the tour was cut short are there any.
  if gflowd status >/dev/null 2>&1; then
    gcancel --me >/dev/null 2>&1 || true
    for id in 1 2 3 4; do gjob wait "$id" >/dev/null 2>&1 || true; done
    gflowd down >/dev/null 2>&1 || true
  fi
  rm -rf "$home"
  exit "$code"
}
trap clean_up EXIT
trap 'exit 130' INT TERM

say() { printf '\n\033[1m# %s\033[0m\n' "$*"; }

# Prints a command as it would be typed, then runs it in this shell, so that variables stay.
show() {
  printf '\033[32m$\033[0m %s\n' "$1"
  eval "$1"
}

devices=""
gpus=$({ nvidia-smi -L 2>/dev/null || true; } | grep -c '^GPU ' || true)
if [[ $gpus -eq 0 ]]; then
  devices="--devices sim:2xRTX3090"
  gpus=2
  say "No NVIDIA GPU here: two simulated ones take their place, everything else is real."
fi

mkdir "$home/project"
cd "$home/project"
cat >preprocess.py <<'END'
import time
print("tokenizing", flush=True)
time.sleep(2)
print("wrote data.bin")
END
cat >train.sh <<'END'
#!/bin/bash
# GFLOW --gpus 1 --time 4:00:00
# GFLOW --name train-resnet
echo "training on CUDA_VISIBLE_DEVICES=$CUDA_VISIBLE_DEVICES"
for epoch in 1 2 3 4; do
  sleep 1
  echo "epoch $epoch  loss 0.$((80 / epoch))"
done
END
cat >evaluate.py <<'END'
print("accuracy 0.91")
END

say "Start the daemon and look at the machine."
show "gflowd up $devices"
show "ginfo"

say "Three stages: the GPU is only held while it is used. A job that wants all GPUs waits its turn."
show 'ID1=$(gbatch --time 30 --name preprocess python3 preprocess.py | grep -oP "\d+")'
show 'ID2=$(gbatch --depends-on $ID1 train.sh | grep -oP "\d+")'
show 'ID3=$(gbatch --depends-on $ID2 --time 10 --name evaluate python3 evaluate.py | grep -oP "\d+")'
show 'gqueue'

say "Preprocessing is over: training has a GPU."
show 'gjob wait $ID1'
show "ID4=\$(gbatch --gpus $gpus --name all-gpus sleep 1 | grep -oP '\\d+')"
show 'gqueue'
show 'ginfo'
show 'gqueue -f JOBID,NAME,NODES,NODELIST'

say "Wait for the rest, then see what happened."
show 'gjob wait $ID3 $ID4'
show 'cat ~/.local/share/gflow/logs/$ID2.log'
show 'gjob log $ID3'
show 'gjob show $ID2'
show 'gqueue -s Finished'

say "That was all on a private daemon; it is stopped and its files are removed."
show "gflowd down"
