# SPDX-License-Identifier: Apache-2.0
"""What containers of a node (kubelet.py) run in tests, what they say, and what GPUs of the node are."""

import json

import pytest
from fake_gpu import FAKE, UUIDS

LASTS = "trap 'exit 5' TERM; while :; do sleep 0.1; done"
TELL = "echo $GFLOW_GPU_UUIDS $GFLOW_GPU_SHARE $NVIDIA_VISIBLE_DEVICES"


def lines_of(log, stream="stdout"):
    """The words of each line that a container wrote, of the file that its runtime keeps of it."""
    lines = [line.split() for line in log.read_text().splitlines()]
    return [words[3:] for words in lines if words[1] == stream]


def said(node, pod, name="main", stream="stdout", run=0):
    [log] = (node.root / "log/pods").glob(f"default_{pod}_*/{name}/{run}.log")
    return lines_of(log, stream)


FAKE_LIBRARIES = f"LD_LIBRARY_PATH={FAKE} ASAN_OPTIONS=verify_asan_link_order=0"


def cuda(*commands):
    """A program that asks the driver this, and answers in the container's log."""
    lines = "\\n".join(["init", "context 0", *commands, ""])
    return f"printf '{lines}' | {FAKE}/cuda_client proc"


@pytest.fixture
def nvidia(node):
    """The node has two GPUs of NVIDIA, and what nvidia-ctk would write of them: its environment for the plugin."""
    machine = node.run / "driver/gpus"
    machine.parent.mkdir()
    machine.write_text("driver 12090\ncontext 300\n" + "".join(f"device {uuid} 16384 NVIDIA H100\n" for uuid in UUIDS))
    (node.etc_cdi / "nvidia.json").write_text(json.dumps({
        "cdiVersion": "0.6.0", "kind": "nvidia.com/gpu",
        "containerEdits": {
            "env": ["GFLOW_FAKE_CUDA=/driver/gpus", *FAKE_LIBRARIES.split()],
            "deviceNodes": [{"path": "/dev/nvidiactl", "hostPath": "/dev/null"}],
            "mounts": [{"hostPath": "/run/driver", "containerPath": "/driver", "options": ["rw", "rbind"]}]},
        "devices": [{"name": uuid, "containerEdits": {"deviceNodes": [{"path": f"/dev/nvidia{index}", "hostPath": "/dev/zero"}]}}
                    for index, uuid in enumerate(UUIDS)]}))
    return {"GFLOW_FAKE_CUDA": str(machine), "LD_LIBRARY_PATH": str(FAKE)}


MACHINE = "version: 1\ndefaults: {model: H100}\ngpus:\n"


def gpus(*uuids, lost=()):
    return MACHINE + "".join(f"  - uuid: {uuid}\n" + ("    state: lost\n" if uuid in lost else "") for uuid in uuids)


WORKS = "echo $GFLOW_GPU_UUIDS $GFLOW_GPU_SHARE $(date +%s%N); sleep 0.3; date +%s%N"


def given_out_twice(node, pods):
    """GPUs of which containers had more than there is, by what they say of themselves and when. One that was killed
    before it could say so did not use them, and one that was killed after that used them at that moment at least."""
    uses = {}
    for name in pods:
        for log in (node.root / "log/pods").glob(f"default_{name}_*/main/*.log"):
            lines = lines_of(log)
            if not lines:
                continue
            uuids, share, begin = lines[0]
            end = lines[1][0] if len(lines) > 1 else begin
            for uuid in uuids.split(","):
                uses.setdefault(uuid, []).append((int(begin), int(end), float(share), name))
    found = []
    for uuid, those in uses.items():
        for begin, _, _, name in those:
            beside = [one for one in those if one[0] <= begin <= one[1]]
            if sum(share for _, _, share, _ in beside) > 1:
                found.append((uuid, name, beside))
    return found, sum(map(len, uses.values()))
