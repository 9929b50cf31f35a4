# SPDX-License-Identifier: Apache-2.0
"""Every command and output of the gflow document (GPU management) that needs no real GPU."""

import re

import pytest
from machine import Gate, Machine


def rows(text):
    """A table as lists of cells; columns are parted by four spaces or more."""
    return [re.split(r" {2,}", line.strip()) for line in text.splitlines()]


def test_ginfo_prints_the_block_of_the_document(machine):
    gate = Gate(machine)
    job = machine.submit("--gpus", "1", "bash", "-c", gate.command)
    gate.reached()
    text = machine.ok("ginfo")
    assert text.startswith("Scheduler Status: Running\nTotal GPUs: 2\nAvailable GPUs: 1\n\n")
    first, second = re.findall(r"^GPU \d: .*\n(?:  .*\n)+", text, re.MULTILINE)[:2]
    assert first.startswith("GPU 0: NVIDIA GeForce RTX 3090\n  UUID: GPU-")
    assert f"\n  Status: In use by job {job}\n" in first
    assert second.startswith("GPU 1: NVIDIA GeForce RTX 3090\n  UUID: GPU-")
    assert "\n  Status: Available\n" in second
    gate.open()
    machine.wait(job)
    assert "Available GPUs: 2\n" in machine.ok("ginfo")


@pytest.mark.devices("none")
def test_without_gpus_everything_else_works(machine):
    text = machine.ok("ginfo")
    assert "Total GPUs: 0\nAvailable GPUs: 0\n" in text
    job = machine.submit("echo", "no GPU needed")
    assert machine.wait(job)[0]["status"] == "Finished"
    assert machine.log(job) == "no GPU needed\n"
    refused = machine.run("gbatch", "--gpus", "1", "true")
    assert refused.code == 7 and "none" in refused.err and refused.out == ""


def test_auto_detection_degrades_gracefully(bare):
    bare.devices = "auto"
    bare.up()
    assert "Scheduler Status: Running\n" in bare.ok("ginfo")
    assert bare.wait(bare.submit("true"))[0]["status"] == "Finished"


@pytest.mark.devices("sim:8xH100")
def test_requests_get_distinct_gpus_and_see_them(machine):
    script = machine.work / "show.sh"
    script.write_text('#!/bin/bash\n# GFLOW --gpus 2\necho "Allocated GPUs: $CUDA_VISIBLE_DEVICES"\n')
    gate = Gate(machine)
    first = machine.submit("--gpus", "1", "bash", "-c", gate.command)
    gate.reached()
    job = machine.submit("show.sh")
    machine.wait(job)
    table = rows(machine.ok("gqueue", "-a", "-f", "JOBID,NAME,NODES,NODELIST", "-j", job))
    assert table[0] == ["JOBID", "NAME", "NODES", "NODELIST(REASON)"]
    assert machine.log(job) == "Allocated GPUs: 1,2\n"
    assert table[1][0] == str(job) and table[1][2] == "2"
    gate.open()
    machine.wait(first)


def test_made_up_names_look_like_the_documents(machine):
    job = machine.submit("--gpus", "2", "true")
    assert re.fullmatch(r"[a-z]+-[a-z]+-\d{4}", machine.job(job)["spec"]["name"])


def test_the_second_job_waits_for_the_first(machine):
    gate = Gate(machine)
    first = machine.submit("--gpus", "2", "--name", "job-1", "bash", "-c", gate.command)
    gate.reached()
    second = machine.submit("--gpus", "1", "--name", "job-2", "true")
    table = rows(machine.ok("gqueue", "-f", "JOBID,NAME,ST,NODES,NODELIST"))
    assert table == [
        ["JOBID", "NAME", "ST", "NODES", "NODELIST(REASON)"],
        ["1", "job-1", "R", "2", "0,1"],
        ["2", "job-2", "PD", "1", "(Resources)"],
    ]
    assert machine.ok("gqueue").splitlines()[0].split() == ["JOBID", "NAME", "ST", "TIME", "NODES", "NODELIST(REASON)"]
    gate.open()
    assert [job["status"] for job in machine.wait(first, second)] == ["Finished", "Finished"]


@pytest.mark.devices("sim:4xRTX3090")
def test_partly_available_says_how_many(machine):
    gate = Gate(machine)
    first = machine.submit("--gpus", "3", "bash", "-c", gate.command)
    gate.reached()
    job = machine.submit("--gpus", "4", "--name", "job-5", "true")
    table = rows(machine.ok("gqueue", "-j", job, "-f", "JOBID,ST,NODES,NODELIST"))
    assert table[1] == [str(job), "PD", "4", "(Resources: Need 4 GPUs, only 1 available)"]
    gate.open()
    machine.wait(first, job)


def test_table_is_laid_out_as_printed(machine):
    gate = Gate(machine)
    machine.submit("--gpus", "2", "--name", "brave-river-1234", "bash", "-c", gate.command)
    gate.reached()
    assert machine.ok("gqueue", "-f", "JOBID,NAME,NODES,NODELIST") == (
        "JOBID    NAME                NODES    NODELIST(REASON)\n"
        "1        brave-river-1234    2        0,1\n"
    )
    gate.open()


@pytest.mark.devices("sim:1xRTX3090")
def test_higher_priority_gets_the_gpu_first(machine):
    gate = Gate(machine)
    running = machine.submit("--gpus", "1", "bash", "-c", gate.command)
    gate.reached()
    order = machine.work / "order"
    low = machine.submit("--priority", "5", "--gpus", "1", "bash", "-c", f"echo low >> {order}")
    high = machine.submit("--priority", "100", "--gpus", "1", "bash", "-c", f"echo high >> {order}")
    gate.open()
    machine.wait(running, low, high)
    assert order.read_text() == "high\nlow\n"


@pytest.mark.devices("sim:1xRTX3090")
def test_the_pipeline_of_the_document(machine):
    for stage in ("preprocess", "train", "evaluate"):
        (machine.work / f"{stage}.py").write_text(f"print('{stage} done')\n")
    out = machine.bash(
        r"""
        ID1=$(gbatch --time 30 python3 preprocess.py | grep -oP '\d+')
        ID2=$(gbatch --depends-on $ID1 --gpus 1 --time 4:00:00 \
                     python3 train.py | grep -oP '\d+')
        gbatch --depends-on $ID2 --time 10 python3 evaluate.py
        """
    )
    last = int(re.fullmatch(r"Submitted batch job (\d+)\n", out).group(1))
    ended = machine.wait(1, 2, last)
    assert [job["status"] for job in ended] == ["Finished"] * 3
    assert [machine.log(n) for n in (1, 2, 3)] == ["preprocess done\n", "train done\n", "evaluate done\n"]
    assert [job["spec"]["time_limit_seconds"] for job in ended] == [1800, 14400, 600]
    assert ended[0]["ended"] <= ended[1]["started"] <= ended[2]["started"]


@pytest.mark.devices("sim:4xRTX3090")
def test_parallel_experiments_with_their_configurations(machine):
    (machine.work / "train.py").write_text(
        "import os\nprint(open(os.environ['GFLOW_JOB_CONFIG']).read(), os.environ['CUDA_VISIBLE_DEVICES'])\n"
    )
    for n in (1, 2, 3):
        (machine.work / f"config{n}.yaml").write_text(f"lr: {n}")
    machine.bash(
        """
        gbatch --gpus 1 --time 2:00:00 --config config1.yaml --name "exp1" python3 train.py
        gbatch --gpus 1 --time 2:00:00 --config config2.yaml --name "exp2" python3 train.py
        gbatch --gpus 1 --time 2:00:00 --config config3.yaml --name "exp3" python3 train.py
        """
    )
    assert [job["spec"]["name"] for job in machine.wait(1, 2, 3)] == ["exp1", "exp2", "exp3"]
    assert [machine.log(n)[:5] for n in (1, 2, 3)] == ["lr: 1", "lr: 2", "lr: 3"]


@pytest.mark.devices("sim:4xRTX3090")
def test_hyperparameter_grid(machine):
    (machine.work / "train.py").write_text("import sys; print(sys.argv[1:])\n")
    machine.bash(
        """
        for lr in 0.001 0.01 0.1; do
            for batch_size in 32 64 128; do
                gbatch --gpus 1 --time 3:00:00 \
                       --name "lr${lr}_bs${batch_size}" \
                       python3 train.py --lr $lr --batch-size $batch_size
            done
        done
        gqueue -s Running,Queued -f JOBID,NAME,NODES,NODELIST
        """
    )
    jobs = machine.wait(*range(1, 10))
    assert jobs[0]["spec"]["name"] == "lr0.001_bs32" and jobs[8]["spec"]["name"] == "lr0.1_bs128"
    assert machine.log(9) == "['--lr', '0.1', '--batch-size', '128']\n"


def test_cpu_and_gpu_jobs_side_by_side(machine):
    gate = Gate(machine)
    gpu = machine.submit("--gpus", "2", "bash", "-c", gate.command)
    gate.reached()
    cpu = machine.submit("bash", "-c", 'echo "[$CUDA_VISIBLE_DEVICES]"')
    assert machine.wait(cpu)[0]["status"] == "Finished"
    assert machine.log(cpu) == "[]\n"
    gate.open()
    machine.wait(gpu)


def test_filters_of_the_document(machine):
    gate = Gate(machine)
    running = machine.submit("--gpus", "2", "--name", "train-resnet", "bash", "-c", gate.command)
    gate.reached()
    waiting = machine.submit("--gpus", "1", "true")
    only = rows(machine.ok("gqueue", "-s", "Running", "-f", "JOBID,NAME,NODES,NODELIST"))
    assert only[1:] == [[str(running), "train-resnet", "2", "0,1"]]
    both = rows(machine.ok("gqueue", "-s", "Running,Queued", "-f", "JOBID,NODES,NODELIST"))
    assert [row[0] for row in both[1:]] == [str(running), str(waiting)]
    one = rows(machine.ok("gqueue", "-j", waiting, "-f", "JOBID,ST,NODES,NODELIST"))
    assert one[1] == [str(waiting), "PD", "1", "(Resources)"]
    assert rows(machine.ok("gqueue", "-s", "Running", "-f", "NODES,NODELIST"))[1] == ["2", "0,1"]
    gate.open()


def test_monitor_script_of_the_document(machine):
    machine.bash(
        """
cat > monitor_gpu.sh << 'EOF'
#!/bin/bash
# GFLOW --gpus 1

echo "=== GPU Allocation ==="
echo "CUDA_VISIBLE_DEVICES: $CUDA_VISIBLE_DEVICES"
EOF
chmod +x monitor_gpu.sh
gbatch monitor_gpu.sh
"""
    )
    assert machine.wait(1)[0]["spec"]["request"]["gpus"] == 1
    assert machine.bash("cat ~/.local/share/gflow/logs/1.log") == "=== GPU Allocation ===\nCUDA_VISIBLE_DEVICES: 0\n"


def test_script_is_copied_at_submission(machine):
    gate = Gate(machine)
    blocker = machine.submit("--gpus", "2", "bash", "-c", gate.command)
    gate.reached()
    script = machine.work / "job.sh"
    script.write_text("#!/bin/bash\n#GFLOW --gpus=1\necho old\n")
    job = machine.submit("job.sh")
    script.write_text("#!/bin/bash\necho new\n")
    gate.open()
    machine.wait(blocker, job)
    assert machine.log(job) == "old\n"


def test_log_and_stderr_are_there_while_it_runs(machine):
    gate = Gate(machine)
    job = machine.submit("bash", "-c", f"echo out; echo err >&2; {gate.command}")
    gate.reached()
    assert machine.log(job) == "out\nerr\n"
    gate.open()
    machine.wait(job)


def test_environment_says_pci_bus_order(machine):
    job = machine.submit("--gpus", "1", "bash", "-c", 'echo "$CUDA_DEVICE_ORDER $GFLOW_JOB_ID $MASTER_ADDR"')
    machine.wait(job)
    assert machine.log(job) == f"PCI_BUS_ID {job} 127.0.0.1\n"


def test_a_bigger_machine_needs_no_more_words():
    machine = Machine("sim:8xH100")
    try:
        machine.up()
        assert "Total GPUs: 8" in machine.ok("ginfo")
        refused = machine.run("gbatch", "--gpus", "9", "python3", "train.py")
        assert refused.code == 7 and "9 GPUs" in refused.err and "8" in refused.err
        assert machine.get("/api/v1/jobs")["jobs"] == []
    finally:
        machine.close()
