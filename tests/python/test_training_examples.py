# SPDX-License-Identifier: Apache-2.0
"""The seven ways of the notebook document, and a training that is preempted: each submitted, and checked by its log."""

import ast
import os
import re
import signal

import pytest
from frameworks import python_with
from machine import appears
from package import ROOT, SOURCE

EXAMPLES = ROOT / "python/examples/training"
DOCUMENT = ROOT / "tests/fixtures/documents/training_on_gpus.txt"
ENVIRONMENT = {"PYTHONPATH": str(SOURCE), "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1"}

# What is submitted with it, and what its log says.
WAYS = {
    "chosen_device.py": (["--gpus", 1], r"the job was given GPUs \d and sees \d\nno GPU .*\nproduct \(3, 4\) on cpu sum 144.0\n"),
    "visible_devices.py": (["--gpus", 2], r"given: (\d),\d\n'\1' devices: 0\n'' devices: 0\n"),
    "model_on_device.py": (["--gpus", 1], r"model on cpu output \(5, 5\) none below zero: True\n"),
    "data_parallel.py": (["--gpus", 2], r"GPUs: 0\nloss fell: True\n"),
    "ddp.py": (["--gpus", 2, "--launch", "ddp"],
               r"(?s).*rank 0 of 2: 32 of 64 samples, weights alike: True\n.*rank 1 of 2: 32 of 64 samples, weights alike: True\n"),
    "model_parallel.py": (["--gpus", 2], r"parts on cpu and cpu loss fell: True\n"),
    "hybrid.py": (["--gpus", 4, "--launch", "ddp"],
                  r"(?s).*worker 0 of 2: 32 samples, loss fell: True\n.*worker 1 of 2: 32 samples, loss fell: True\n"),
}


# The cells of the document as they are printed there, by what stands at their heads, on a machine whose GPUs PyTorch cannot use.
CELLS = {
    "单进程指定GPU计算": ("Finished", r"系统中有 0 块可用的GPU。\n没有可用的GPU。\n由于没有可用的GPU，无法执行GPU上的矩阵乘法。\n"),
    "指定进程的GPU可见范围": ("Finished", r"(?s)当前使用的设备: cpu\nMatrix 1:\ntensor.*Result of matrix multiplication:\ntensor.*"),
    "把模型放到GPU上做计算": ("Failed", r"(?s).*model\.to\(device\).*(NVIDIA driver|CUDA).*"),  # it names cuda:1
    "单机多卡, 单进程跨GPU计算": ("Finished", r"Using single GPU or CPU\n(Epoch \d, Loss: \d\.[\de-]+\n){5}"),
}
PSEUDOCODE = ["策略一：数据拆分，模型不拆分", "策略二：数据不拆分，模型拆分", "策略三：数据拆分，模型拆分"]


def cells():
    """By the title in each."""
    found = {}
    for text in re.split(r"^In \[[^\]]*\]:\n", DOCUMENT.read_text(), flags=re.MULTILINE)[1:]:
        code = text.split("\n## ")[0]
        code = re.sub(r"(?s)\n\n\nUsing 2 GPUs.*", "\n", code)  # what it printed there
        found[re.match(r"'{3}\n(?:Demo, |Pseudocode，)(.*)", code)[1]] = code
    return found


def submit(machine, options, *words, **more):
    python = python_with("PyTorch")
    return machine.submit(*options, python, *words, env=ENVIRONMENT | more)


def without_warnings(machine, job):
    """Of PyTorch: a line that says so, and the line of the source it shows."""
    return re.sub(r"(?m)^.*Warning: .*\n(  .*\n)?", "", machine.log(job))


def said(machine, job):
    """What its log says; of several processes in order."""
    lines = without_warnings(machine, job).splitlines(keepends=True)
    return "".join(sorted(lines) if any(line.startswith(("rank", "worker")) for line in lines) else lines)


SAYS = "import os; print('rank', *[os.environ[name] for name in ('RANK', 'LOCAL_RANK', 'WORLD_SIZE', 'MASTER_ADDR', 'MASTER_PORT')])"


def by_launcher(machine, launcher):
    """A job whose processes a launcher on its PATH starts, with its GPUs, its address and its port."""
    python = python_with("PyTorch")
    return machine.submit("--gpus", 2, "--launch", launcher, "bash", "-c", f'exec python -c "{SAYS}"',
                          env=ENVIRONMENT | {"PATH": f"{python.parent}:{machine.environment['PATH']}"})


@pytest.mark.devices("sim:16xA100")
def test_each_cell_and_each_way_runs_as_a_job(machine):
    jobs = {}
    for place, title in enumerate(CELLS):
        (machine.work / f"cell{place}.py").write_text(cells()[title])
        jobs[title] = submit(machine, ["--gpus", 1], f"cell{place}.py")
    jobs |= {name: submit(machine, options, EXAMPLES / name) for name, (options, _) in WAYS.items()}
    jobs |= {launcher: by_launcher(machine, launcher) for launcher in ("torchrun", "accelerate")}
    machine.wait(*jobs.values())
    for title, (status, pattern) in CELLS.items():
        assert machine.job(jobs[title])["status"] == status and re.fullmatch(pattern, without_warnings(machine, jobs[title])), (
            title, machine.log(jobs[title]))
    for name, (_, pattern) in WAYS.items():
        assert machine.job(jobs[name])["status"] == "Finished", (name, machine.log(jobs[name]))
        assert re.fullmatch(pattern, said(machine, jobs[name])), (name, machine.log(jobs[name]))
    for launcher in ("torchrun", "accelerate"):
        log = machine.log(jobs[launcher])
        ranks = sorted(line.split() for line in log.splitlines() if line.startswith("rank "))
        assert [one[1:5] for one in ranks] == [["0", "0", "2", "127.0.0.1"], ["1", "1", "2", "127.0.0.1"]], log


def test_every_cell_is_here():
    """Pseudocode cannot run: it is Python, and what it names of PyTorch is what the examples use."""
    assert list(cells()) == [*CELLS, *PSEUDOCODE]
    examples = "".join(path.read_text() for path in EXAMPLES.iterdir())
    for title in PSEUDOCODE:
        ast.parse(cells()[title])
    for name in ("DataParallel", "DistributedDataParallel", "DistributedSampler", "init_process_group", "destroy_process_group"):
        assert name in "".join(cells()[title] for title in PSEUDOCODE) and name in examples


def weights(machine, job):
    return [line for line in machine.log(job).splitlines() if line.startswith("weights")]


@pytest.mark.devices("sim:2xA100")
def test_one_that_is_preempted_comes_to_the_weights_of_one_that_is_not(machine):
    """Its random numbers go on, too. Preempted while it is in the middle, which its first checkpoint tells."""
    whole = submit(machine, ["--gpus", 1, "--chdir", machine.work], EXAMPLES / "resume.py", 200, 0)
    machine.wait(whole)
    (machine.work / "checkpoints").rename(machine.work / "whole")
    (machine.work / "checkpoints").mkdir()
    job = submit(machine, ["--gpus", 2, "--preemptible", "--priority", 1], EXAMPLES / "resume.py", 200, 0.02)
    appears(machine.work / "checkpoints", "step-0000000050")
    os.kill(machine.job(job)["pid"], signal.SIGSTOP)  # it stands still until gflow tells it to end
    urgent = machine.submit("--gpus", 2, "--priority", 200, "true")
    machine.wait(urgent, job)
    told = machine.log(job).splitlines()
    starts = [line for line in told if line.startswith("from")]
    assert starts[0] == "from step 0" and len(starts) == 2 and int(starts[1].split()[-1]) >= 50, told
    assert [line for line in told if line.startswith("step")] == [f"step {step}" for step in range(200)]
    assert weights(machine, job) == weights(machine, whole) != []
