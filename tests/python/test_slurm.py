# SPDX-License-Identifier: Apache-2.0
"""The commands with a real Slurm: what is submitted there, how it is shown and followed, what becomes of it."""

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

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


def gflow(slurm, program, *words, code=0, env=None):
    done = subprocess.run([BIN / program, "--server", "slurm", *map(str, words)], env=env or slurm.environment, cwd=slurm.work,
                          capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == code, f"{program} {words}: exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done


def instead_of(slurm, program, lines):
    """An environment in which that program of Slurm is a script, which finds the real one as $REAL."""
    real = shutil.which(program, path=slurm.environment["PATH"])
    directory = Path(tempfile.mkdtemp(dir=slurm.root))
    (directory / program).write_text(f"#!/bin/bash\nREAL={real}\n{lines}\n")
    (directory / program).chmod(0o755)
    return slurm.environment | {"PATH": f"{directory}:{slurm.environment['PATH']}"}


def states(slurm, *names):
    """Of tasks by their name of Slurm, "35_2"."""
    return {name: re.search(r"JobState=(\w+)", described(slurm, name))[1] for name in names}


def is_submitting(gbatch, started):
    """Whether the gflow-slurm of that gbatch waits for an earlier sbatch, or has started another one."""
    files = []
    with contextlib.suppress(OSError):  # one that ends meanwhile
        for child in Path(f"/proc/{gbatch}/task/{gbatch}/children").read_text().split():
            files += [os.readlink(file) for file in Path(f"/proc/{child}/fd").iterdir()]
    return len(started.read_text().splitlines()) > 1 or any(file.endswith("/slurm-submissions") for file in files)


def submit(slurm, *words, **options):
    """Its number, which is Slurm's."""
    said = gflow(slurm, "gbatch", *words, **options).stdout
    return int(re.fullmatch(r"Submitted batch job (\d+)\n", said)[1])


def described(slurm, job):
    """As Slurm 22.05 writes it; 24.11 has 'gres/gpu'."""
    return slurm.ok("scontrol", "--oneliner", "--details", "show", "job", job).replace("gres/", "gres:")


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


def test_a_task_has_what_scripts_of_arrays_read(slurm):
    script = slurm.work / "of_array.sh"
    script.write_text("#!/bin/bash\n#SBATCH --array=5-6\n#SBATCH -o task_%a.txt -J x\n"
                      "echo $SLURM_ARRAY_TASK_ID of $SLURM_ARRAY_TASK_COUNT, ${SLURM_ARRAY_JOB_ID-none}\n"
                      "cat <<END\n#SBATCH --array=1-3\nEND\n")
    gflow(slurm, "gbatch", "--wait", script)
    for task in (5, 6):
        assert (slurm.work / f"task_{task}.txt").read_text() == f"{task} of 2, none\n#SBATCH --array=1-3\n"


def test_a_task_of_an_array_of_sbatch_is_changed_alone(slurm):
    script = slurm.work / "sleeps.sh"
    script.write_text("#!/bin/sh\nsleep 600\n")
    array = int(slurm.ok("sbatch", "--parsable", "--array=1-3", script))
    tasks = [f"{array}_{task}" for task in (1, 2, 3)]
    slurm.until(lambda: set(states(slurm, *tasks).values()) == {"RUNNING"}, "their start")
    gflow(slurm, "gcancel", array)  # the last task has the number of all
    slurm.until(lambda: states(slurm, tasks[2]) == {tasks[2]: "CANCELLED"}, "its end")
    assert set(states(slurm, *tasks[:2]).values()) == {"RUNNING"}


def test_what_is_left_of_an_array_is_changed_without_what_runs(slurm):
    script = slurm.work / "sleeps.sh"
    script.write_text("#!/bin/sh\nsleep 600\n")
    array = int(slurm.ok("sbatch", "--parsable", "--array=1-4%1", script))
    slurm.until(lambda: states(slurm, f"{array}_1")[f"{array}_1"] == "RUNNING", "the start of the first")
    gflow(slurm, "gjob", "hold", array)
    reasons = slurm.ok("squeue", "--noheader", "--array", f"--jobs={array}", "--format=%i %r").splitlines()
    assert sorted(reasons) == [f"{array}_1 None", *(f"{array}_{task} JobHeldUser" for task in (2, 3, 4))]
    gflow(slurm, "gjob", "release", array)
    gflow(slurm, "gcancel", array)
    left = slurm.ok("squeue", "--noheader", "--array", f"--jobs={array}", "--format=%i %T")
    assert left == f"{array}_1 RUNNING\n"


@pytest.mark.parametrize("variable", ["SCANCEL_STATE=PENDING", "SCANCEL_NAME=nothing", "SCANCEL_INTERACTIVE=true"])
def test_a_cancellation_is_not_changed_by_the_environment(slurm, variable):
    job = submit(slurm, "sleep", "600")
    slurm.until(lambda: "JobState=RUNNING" in described(slurm, job), "its start")
    gflow(slurm, "gcancel", job, env=slurm.environment | dict([variable.split("=")]))
    slurm.until(lambda: "JobState=CANCELLED" in described(slurm, job), "its end")


@pytest.mark.parametrize("line", ["#SBATCH --wait", "#SBATCH -J x -W -t 5", "#SBATCH --quiet"])
def test_a_script_does_not_keep_the_number_of_its_job(slurm, line):
    script = slurm.work / "waits.sh"
    script.write_text(f"#!/bin/sh\n{line}\nexit 4\n")
    job = submit(slurm, script)
    gflow(slurm, "gjob", "wait", job, code=4)
    for variable in ("SBATCH_WAIT", "SBATCH_ARRAY_INX"):
        submit(slurm, script, env=slurm.environment | {variable: "1"})


def test_a_submission_is_made_once_though_gflow_slurm_is_killed(slurm):
    """Its sbatch goes on, and what comes in its place waits for that."""
    started, go = slurm.root / "started", slurm.root / "go"
    environment = instead_of(slurm, "sbatch", f"echo $PPID >> {started}\nuntil [ -e {go} ]; do sleep 0.05; done\nexec $REAL \"$@\"")
    asked = subprocess.Popen([BIN / "gbatch", "--server", "slurm", "--hold", "--name", "once", "true"], env=environment, cwd=slurm.work,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    slurm.until(lambda: started.exists() and started.read_text().endswith("\n"), "sbatch")
    os.kill(int(started.read_text()), signal.SIGKILL)
    slurm.until(lambda: is_submitting(asked.pid, started), "the next gflow-slurm")
    go.touch()
    said, _ = asked.communicate(timeout=PATIENCE)
    ids = slurm.ok("squeue", "--noheader", "--name=once", "--format=%A").split()
    assert asked.returncode == 0 and len(ids) == 1 and f"Submitted batch job {ids[0]}\n" in said, (ids, said)


def test_a_submission_that_sbatch_does_not_tell_of_is_found(slurm):
    environment = instead_of(slurm, "sbatch", "$REAL \"$@\" > /dev/null\necho 'sbatch: error: Batch job submission failed: "
                             "Socket timed out on send/recv operation' >&2\nexit 1")
    job = submit(slurm, "--hold", "--name", "late", "true", env=environment)
    assert slurm.ok("squeue", "--noheader", "--name=late", "--format=%A").split() == [str(job)]


def test_what_was_submitted_before_an_error_is_told(slurm):
    count = slurm.root / "count"
    environment = instead_of(slurm, "sbatch", f"echo >> {count}\n[ $(wc -l < {count}) -lt 3 ] || {{ echo 'sbatch: error: "
                             "QOSMaxSubmitJobPerUserLimit' >&2; exit 1; }\nexec $REAL \"$@\"")
    said = gflow(slurm, "gbatch", "--hold", "--array", "1-5", "true", code=7, env=environment).stderr
    ids = sorted(map(int, slurm.ok("squeue", "--noheader", "--format=%A").split()))
    assert len(ids) == 2
    assert f"QOSMaxSubmitJobPerUserLimit; of 5 jobs, 2 were submitted before: 'gcancel {ids[0]} {ids[1]}' cancels them" in said
    group = re.search(r"gqueue --group (group-\w+)", said)[1]
    assert sorted(job["id"] for job in json.loads(gflow(slurm, "gqueue", "--group", group, "--json").stdout)["jobs"]) == ids


def test_a_job_that_slurm_does_not_know_is_not_waited_for(slurm):
    said = gflow(slurm, "gbatch", "--depends-on", 999999, "--name", "never", "true", code=3).stderr
    assert "Slurm does not know job 999999" in said
    assert not slurm.ok("squeue", "--noheader", "--states=all", "--name=never")


def test_what_a_script_says_holds(slurm):
    script = slurm.work / "says.sh"
    script.write_text("#!/bin/sh\n#SBATCH -N 2 --ntasks-per-node=3\n#SBATCH --comment='of mine' --nice=10000\n#SBATCH --gpus-per-node=2\ntrue\n")
    said = described(slurm, submit(slurm, "--hold", script))
    for wanted in ("NumTasks=6 ", " of mine ", "Nice=10000 ", "TresPerNode=gres:gpu:2 "):
        assert wanted in said, (wanted, said)
    assert "Nice=700 " in described(slurm, submit(slurm, "--hold", "--nice=7", script))
    assert "TresPerNode=gres:gpu:1 " in described(slurm, submit(slurm, "--hold", "--gpus", "1", script))


def test_what_is_of_another_is_refused_as_that(slurm):
    job = slurm.ok("sbatch", "--parsable", "--hold", "--wrap=true").strip()
    environment = instead_of(slurm, "scancel", "echo 'scancel: error: Kill job error on job id 1: Access/permission denied' >&2; exit 1")
    assert "permission denied" in gflow(slurm, "gcancel", job, code=5, env=environment).stderr
    assert "scancel --full --signal" in gflow(slurm, "gcancel", "--signal", "USR1", job, code=2).stderr
    assert gflow(slurm, "gjob", "why", job).stdout.startswith(f"Job {job} (wrap)")


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
    assert "'scontrol requeue NUMBER' makes room" in gflow(slurm, "gctl", "defrag", code=2).stderr
    assert "Slurm says: Batch job submission failed: Requested node configuration" in gflow(
        slurm, "gbatch", "--gpus", GPUS + 1, "true", code=7).stderr


def test_nodes_are_shown_with_who_has_what(slurm):
    submit(slurm, "--gpus", "4(A100)", "sleep", "600")
    slurm.until(lambda: slurm.ok("squeue", "--noheader", "--states=RUNNING"), "its start")
    nodes = json.loads(gflow(slurm, "ginfo", "--json").stdout)["nodes"]
    assert {node["name"]: len(node["devices"]) for node in nodes} == {name: GPUS for name in slurm.nodes}
    busy = {node["name"]: sum(bool(device["jobs"]) for device in node["devices"]) for node in nodes}
    assert busy == {"n1": 0, "n2": 0, "n3": GPUS}


@pytest.mark.parametrize(("asked", "gpus"), [
    (["--gpus=2"], 2), (["--gpus-per-task=1", "--ntasks=3", "--cpus-per-task=2"], 3), (["--nodes=2", "--ntasks-per-node=1", "--gpus=3"], 3),
    (["--gres=gpu:1", "--gpus-per-node=1"], 1), (["--gres=shard:v100:5"], 1)])
def test_the_gpus_of_a_job_of_sbatch_are_shown_however_it_asked(slurm, asked, gpus):
    job = slurm.ok("sbatch", "--parsable", *asked, "--wrap=sleep 600").strip()
    slurm.until(lambda: "JobState=RUNNING" in described(slurm, job), "its start")
    nodes = json.loads(gflow(slurm, "ginfo", "--json").stdout)["nodes"]
    assert sum(bool(device["jobs"]) for node in nodes for device in node["devices"]) == gpus


def test_a_name_is_no_other_job(slurm):
    victim = submit(slurm, "--hold", "true")
    forged = f"x\n\nJobId={victim} JobName=y\n   Requeue=1 ExitCode=9:0\n   StdOut=/etc/passwd"
    slurm.ok("sbatch", "--hold", f"--job-name={forged}", "--wrap=true")
    jobs = json.loads(gflow(slurm, "gqueue", "--json").stdout)["jobs"]
    assert len(jobs) == 2 and "/etc/passwd" not in shown(slurm, victim)["log_path"]


def test_the_name_of_a_job_takes_nothing_from_another(slurm):
    ended = submit(slurm, "--wrap", "exit 7")
    runs = submit(slurm, "--gpus", "1", "sleep", "600")
    slurm.until(lambda: "JobState=RUNNING" in described(slurm, runs), "its start")
    for victim in (ended, runs):
        slurm.ok("sbatch", "--hold", f"--job-name=x\nJobId={victim} JobName=y", "--wrap=true")
    gflow(slurm, "gjob", "wait", ended, code=7)
    assert gflow(slurm, "gjob", "log", ended).stdout == ""
    assert len(shown(slurm, runs)["gpu_indices"]) == 1


def test_what_scontrol_does_not_tell_is_not_made_up(slurm):
    """A look that fails in part is no look."""
    ended = submit(slurm, "--wrap", "exit 7")
    slurm.until(lambda: "JobState=FAILED" in described(slurm, ended), "its end")
    environment = instead_of(slurm, "scontrol", "[[ \"$*\" != *'show job'* ]] || { echo 'slurm_load_jobs error: Socket timed out on "
                             "send/recv operation' >&2; exit 1; }\nexec $REAL \"$@\"")
    assert "Socket timed out" in gflow(slurm, "gjob", "wait", ended, code=4, env=environment).stderr
    gflow(slurm, "gjob", "wait", ended, code=7)


def test_a_node_that_fails_gives_nothing(slurm):
    slurm.ok("scontrol", "update", "NodeName=n2", "State=FAIL", "Reason=fan [left] broken")
    try:
        node = next(node for node in json.loads(gflow(slurm, "ginfo", "--json").stdout)["nodes"] if node["name"] == "n2")
        assert "fan [left] broken" in json.dumps(node)
    finally:
        slurm.ok("scontrol", "update", "NodeName=n2", "State=RESUME")


def test_without_slurm_it_says_so(slurm):
    done = subprocess.run([BIN / "gqueue", "--server", "slurm"], env={"PATH": "/nowhere", "HOME": str(slurm.work)}, capture_output=True,
                          text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 3 and "Slurm's commands are not installed" in done.stderr
