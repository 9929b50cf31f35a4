# SPDX-License-Identifier: Apache-2.0
"""ginfo --free: which GPUs a request would get now, for programs that are started by hand."""

import json

import pytest
from machine import Machine


@pytest.fixture
def four():
    machine = Machine(devices="sim:4xH100")
    try:
        machine.up()
        yield machine
    finally:
        machine.close()


def test_the_pick_is_what_a_job_would_get(four):
    machine = four
    for request in ("1", "2", "3", "4", "0.5", "2(H100)"):
        pick = machine.ok("ginfo", "--free", request)
        job = machine.submit("--gpus", request, "sleep", "1000")
        machine.running(job)
        assert pick == ",".join(map(str, machine.job(job)["gpu_indices"])) + "\n", request
        machine.ok("gcancel", job)
        machine.wait(job)
    assert machine.ok("gqueue", "-a", "-f", "JOBID", "--noheader").split() == [str(n) for n in range(1, 7)], "it submits nothing"


def test_a_script_has_the_indices_or_nothing(four):
    machine = four
    machine.running(machine.submit("--gpus", 2, "sleep", "1000"))
    line = 'gpus=$(ginfo --free 2 --gpu-memory 40G) && CUDA_VISIBLE_DEVICES=$gpus sh -c \'echo "on $CUDA_VISIBLE_DEVICES"\''
    free = {0, 1, 2, 3} - set(machine.job(1)["gpu_indices"])
    assert machine.bash(line) == f"on {','.join(map(str, sorted(free)))}\n"
    machine.running(machine.submit("--gpus", 1, "sleep", "1000"))
    ran = machine.run(line, shell=True)
    assert (ran.code, ran.out) == (6, "") and "Need 2 GPUs, only 1 available" in ran.err and "galloc" in ran.err, ran
    ran = machine.run("ginfo", "--free", "1", "--gpu-memory", "60G")
    assert ran.code == 0 and ran.err == "", ran


def test_what_is_lacking_is_named_with_its_model():
    machine = Machine(devices="sim:2xRTX3090+1xA100")
    try:
        machine.up()
        machine.running(machine.submit("--gpus", "1(A100)", "sleep", "1000"))
        ran = machine.run("ginfo", "--free", "1(A100)")
        assert ran.code == 6 and "Need 1 A100 GPU, none available" in ran.err, ran
        waits = machine.submit("--gpus", "1(A100)", "true")
        for told in (machine.ok("gjob", "why", waits), machine.ok("gbatch", "--dry-run", "--gpus", "1(A100)", "true")):
            assert "Need 1 A100 GPU, none available" in told, told
    finally:
        machine.close()


def test_what_can_never_be_had_is_told_apart(four):
    for words in (["5"], ["1(A100)"], ["1", "--gpu-model", "V100"], ["1", "--gpu-memory", "500G"]):
        ran = four.run("ginfo", "--free", *words)
        assert (ran.code, ran.out) == (7, "") and ran.err.startswith("ginfo: "), ran
    for words in (["0"], ["two"], ["1", "--topo"], ["-1"], []):
        ran = four.run("ginfo", "--free", *words)
        assert (ran.code, ran.out) == (2, ""), ran
    ran = four.run("ginfo", "--gpu-memory", "8G")
    assert ran.code == 2 and "--free" in ran.err, ran


def test_json_names_them_for_good(four):
    document = json.loads(four.ok("ginfo", "--free", "2", "--json"))
    assert (document["kind"], document["request"], len(document["gpus"])) == ("FreeGpus", "2", 2)
    devices = {device["index"]: device for device in four.get("/api/v1/machine")["nodes"][0]["devices"]}
    for gpu in document["gpus"]:
        assert gpu["uuid"] == devices[gpu["index"]]["uuid"] and gpu["model"] == devices[gpu["index"]]["model"]


def test_a_limit_of_the_user_is_the_reason(four):
    machine = four
    machine.ok("gctl", "config", "set", "limits.max_gpus_per_user", "2")
    machine.running(machine.submit("--gpus", 1, "sleep", "1000"))
    assert machine.run("ginfo", "--free", "1").code == 0
    ran = machine.run("ginfo", "--free", "2")
    assert (ran.code, ran.out) == (6, "") and "GpuLimit" in ran.err, ran


def test_a_drained_gpu_is_none(four):
    for gpu in (0, 1, 2):
        four.ok("gctl", "drain", "gpu", gpu)
    assert four.ok("ginfo", "--free", "1") == "3\n"
    assert four.run("ginfo", "--free", "2").code == 6
