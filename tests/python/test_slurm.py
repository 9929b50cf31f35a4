# SPDX-License-Identifier: Apache-2.0
"""The commands with a real Slurm: what is submitted there, how it is shown and followed, what becomes of it."""

import json
import re
import subprocess

import pytest
from machine import BIN, PATIENCE
from slurm import GPUS, SHARDS_OF_GPU, Slurm


@pytest.fixture(scope="module")
def whole_slurm():
    made = Slurm()
    try:
        made.start()
        yield made
    finally:
        made.close()


@pytest.fixture
def slurm(whole_slurm):
    """Nothing of an earlier test runs or waits there."""
    yield whole_slurm
    whole_slurm.run("scancel", "--user=root")
    whole_slurm.until(lambda: not whole_slurm.ok("squeue", "--noheader"), "the end of what ran")


def gflow(slurm, program, *words, code=0, **options):
    done = subprocess.run([BIN / program, "--server", "slurm", *map(str, words)], env=slurm.environment, cwd=slurm.work, capture_output=True,
                          text=True, timeout=PATIENCE, check=False, **options)
    assert done.returncode == code, f"{program} {words}: exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done


def submit(slurm, *words, **options):
    """Its number, which is Slurm's."""
    said = gflow(slurm, "gbatch", *words, **options).stdout
    return int(re.fullmatch(r"Submitted batch job (\d+)\n", said)[1])


def described(slurm, job):
    return slurm.ok("scontrol", "--oneliner", "--details", "show", "job", job)


def shown(slurm, job):
    return json.loads(gflow(slurm, "gjob", "show", job, "--json").stdout)


def test_a_job_has_what_was_asked_for(slurm):
    job = submit(slurm, "--gpus", "2(V100)", "--cpus", "3", "--memory", "1G", "--time", "10", "--name", "train", "sleep", "600")
    slurm.until(lambda: "JobState=RUNNING" in described(slurm, job), "its start")
    said = described(slurm, job)
    for wanted in ("JobName=train ", "TresPerNode=gres:gpu:v100:2", "CPUs/Task=3", "MinMemoryNode=1G", "TimeLimit=00:10:00", f"WorkDir={slurm.work}"):
        assert wanted in said, said
    view = shown(slurm, job)
    assert view["status"] == "Running" and len(view["gpu_indices"]) == 2 and view["node"] in ("n1", "n2")
    assert "train" in gflow(slurm, "gqueue").stdout
    gflow(slurm, "gcancel", job)
    slurm.until(lambda: "JobState=CANCELLED" in described(slurm, job), "its end")


def test_a_share_is_asked_for_as_shards(slurm):
    job = submit(slurm, "--gpus", "0.5(V100)", "sleep", "600")
    assert f"TresPerNode=gres:shard:v100:{SHARDS_OF_GPU // 2}" in described(slurm, job)
    most_of_its_memory = submit(slurm, "--gpus", "32G,0.1(A100)", "sleep", "600")
    assert re.search(r"TresPerNode=gres:shard:a100:(4|8) ", described(slurm, most_of_its_memory))


def test_a_script_runs_with_its_arguments_and_ends_with_its_code(slurm):
    script = slurm.work / "train.sh"
    script.write_text("#!/bin/bash\n#SBATCH --job-name=mine\necho \"got $2 on $CUDA_VISIBLE_DEVICES\" $A\nexit 3\n")
    said = gflow(slurm, "gbatch", "--wait", "--gpus", "1", "--export", "ALL,A=b", script, "x", "a  b", code=3)
    job = int(re.search(r"\d+", said.stdout)[0])
    assert "JobName=mine" in described(slurm, job)
    assert re.fullmatch(r"got a  b on \d b\n", gflow(slurm, "gjob", "log", job).stdout)


def test_each_task_of_an_array_is_a_job(slurm):
    script = slurm.work / "array.sh"
    script.write_text("#!/bin/bash\n#SBATCH --array=1-3\necho task $GFLOW_ARRAY_TASK_ID\n")
    jobs = re.findall(r"\d+", gflow(slurm, "gbatch", "--wait", script).stdout)
    assert len(jobs) == 3
    assert [gflow(slurm, "gjob", "log", job).stdout for job in jobs] == ["task 1\n", "task 2\n", "task 3\n"]


def test_what_waits_says_why(slurm):
    held = submit(slurm, "--hold", "--gpus", "1", "true")
    assert "JobHeldUser" in gflow(slurm, "gjob", "why", held).stdout or shown(slurm, held)["status"] == "Held"
    after = submit(slurm, "--depends-on", held, "true")
    assert "Dependency: it waits for other jobs" in gflow(slurm, "gjob", "why", after).stdout
    gflow(slurm, "gjob", "release", held)
    gflow(slurm, "gjob", "wait", after)
    waits = submit(slurm, "--begin", "now+1h", "true")
    gflow(slurm, "gjob", "hold", waits)
    assert "Reason=JobHeldUser" in described(slurm, waits)


def test_what_slurm_cannot_do_is_refused_with_what_does_it(slurm):
    for words, said in ((("--priority", "200"), "leave out --priority"), (("--gpus", "1(H100)"), "there are: a100, v100"),
                        (("--gpus", "2x0.5"), "parts of several GPUs"), (("--gpus", "1,500G"), "known to have so much memory"),
                        (("--max-retries", "2"), "--max-retries")):
        done = subprocess.run([BIN / "gbatch", "--server", "slurm", *words, "true"], env=slurm.environment, cwd=slurm.work,
                              capture_output=True, text=True, timeout=PATIENCE, check=False)
        assert done.returncode != 0 and said in done.stderr, (words, done.stderr)
    assert "Slurm says: Batch job submission failed: Requested node configuration" in gflow(
        slurm, "gbatch", "--gpus", GPUS + 1, "true", code=7).stderr


def test_nodes_are_shown_with_who_has_what(slurm):
    submit(slurm, "--gpus", "4(A100)", "sleep", "600")
    slurm.until(lambda: slurm.ok("squeue", "--noheader", "--states=RUNNING"), "its start")
    nodes = json.loads(gflow(slurm, "ginfo", "--json").stdout)["nodes"]
    assert {node["name"]: len(node["devices"]) for node in nodes} == {name: GPUS for name in slurm.nodes}
    busy = {node["name"]: sum(bool(device["jobs"]) for device in node["devices"]) for node in nodes}
    assert busy == {"n1": 0, "n2": 0, "n3": GPUS}


def test_a_name_is_no_other_job(slurm):
    victim = submit(slurm, "--hold", "true")
    forged = f"x\n\nJobId={victim} JobName=y\n   Requeue=1 ExitCode=9:0\n   StdOut=/etc/passwd"
    slurm.ok("sbatch", "--hold", f"--job-name={forged}", "--wrap=true")
    jobs = json.loads(gflow(slurm, "gqueue", "--json").stdout)["jobs"]
    assert len(jobs) == 2 and "/etc/passwd" not in shown(slurm, victim)["log_path"]


def test_without_slurm_it_says_so(slurm):
    done = subprocess.run([BIN / "gqueue", "--server", "slurm"], env={"PATH": "/nowhere", "HOME": str(slurm.work)}, capture_output=True,
                          text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 3 and "Slurm's commands are not installed" in done.stderr
