# SPDX-License-Identifier: Apache-2.0
"""Jobs that share a GPU are held to their part of it: gflowd, its jobs and their driver on the machine of tests/fake_cuda."""

import json
import os
import shutil
import struct

import pytest
from fake_gpu import CLOCK, FAKE, GIB, INTERPOSER, Account, virtual_clock
from machine import BIN, Gate

CLIENT = FAKE / "cuda_client"
CAPPED = "memory and compute capped by the interposer"
NOT_ENFORCED = "not enforced: what a job asked for is reserved, and one over its GPU memory is shown"


def asked(*commands):
    """Words of a job that asks the driver this and answers in its log."""
    lines = "\\n".join(["init", "context 0", *commands, ""])
    return ["bash", "-c", f"printf '{lines}' | {CLIENT} proc"]


def answers(machine, job):
    """Of its commands: the numbers of each."""
    return [[int(word) for word in line.split()] for line in machine.log(job).splitlines()][2:]


def limit_of(account):
    """The most of the first GPU's time, in 10,000ths."""
    return struct.unpack_from("<Q", account.read_bytes(), Account.DEVICES + 88)[0]


def set_limit(account, parts):
    with account.open("r+b") as file:
        file.seek(Account.DEVICES + 88)
        file.write(struct.pack("<Q", parts))


class Holder:
    """A job that holds memory until it is let go."""

    def __init__(self, machine, name, request, *commands, more=()):
        self.machine, self.gate = machine, Gate(machine, name)
        lines = "\\n".join(["init", "context 0", *commands, ""])
        script = f"{{ printf '{lines}'; {self.gate.command}; }} | {CLIENT} proc"
        self.job = machine.submit("--gpus", request, *more, "--name", name, "bash", "-c", script)
        self.gate.reached()

    def end(self):
        self.gate.open()
        assert self.machine.wait(self.job)[0]["status"] == "Finished"
        return answers(self.machine, self.job)


def test_a_job_gets_what_it_asked_for_and_its_neighbour_too(gpu_machine):
    gpu_machine.up()
    greedy = Holder(gpu_machine, "greedy", "7G,0.5", f"alloc {8 * GIB}", f"alloc {7 * GIB}", "alloc 512", "info", "nvml 0")
    neighbour = Holder(gpu_machine, "neighbour", "7G,0.5", f"alloc {7 * GIB}")
    assert gpu_machine.job(greedy.job)["gpu_indices"] == gpu_machine.job(neighbour.job)["gpu_indices"]
    first = greedy.end()
    assert first[:1] == [[2]] and first[1][0] == 0 and first[2] == [2]
    assert first[3] == [0, 0, 7 * GIB]  # nothing is free, of 7 GiB
    assert first[4] == [0, 7 * GIB, 0, 7 * GIB] + [7 * GIB, 0, 7 * GIB]
    assert neighbour.end()[0][0] == 0
    outcome = gpu_machine.job(greedy.job)["outcome"]
    assert outcome["reason"] == "exited" and outcome["exit_code"] == 0


def test_it_is_said_by_what_means(gpu_machine):
    gpu_machine.up()
    waits = gpu_machine.submit("--hold", "--gpus", "7G,0.5", "true")
    assert "memory and compute capped by the interposer on NVIDIA GPUs" in gpu_machine.ok("gjob", "show", waits)
    shares, whole = Holder(gpu_machine, "shares", "7G,0.5", "info"), Holder(gpu_machine, "whole", "1", "info")
    assert f"GPU share     {CAPPED}\n" in gpu_machine.ok("gjob", "show", shares.job)
    assert gpu_machine.job(shares.job)["gpu_limits"] == {"memory": "interposer", "compute": "interposer"}
    assert "GPU share" not in gpu_machine.ok("gjob", "show", whole.job)
    assert gpu_machine.job(whole.job)["gpu_limits"] is None
    # The account is the fact: a daemon that comes after knows, too.
    gpu_machine.kill_daemon()
    gpu_machine.up()
    assert gpu_machine.job(shares.job)["gpu_limits"]["memory"] == "interposer"
    shares.end()
    whole.end()
    assert gpu_machine.job(shares.job)["gpu_limits"] is None
    assert not list(gpu_machine.state.glob("attempts/*/share"))
    assert "memory and compute capped by the interposer on NVIDIA GPUs" in gpu_machine.ok("gflow", "spec", "8G,0.5")
    checks = {check["name"]: check for check in json.loads(gpu_machine.run("gflow", "doctor", "--json").out)["checks"]}
    assert checks["GPU memory limits"]["level"] == "ok" and "LD_PRELOAD" in checks["GPU memory limits"]["advice"]
    assert checks["GPU compute shares"]["level"] == "ok" and "copies" in checks["GPU compute shares"]["advice"]


def test_a_share_has_its_share_of_the_memory(gpu_machine):
    gpu_machine.up()
    job = gpu_machine.submit("--gpus", "0.5", *asked("info"))
    gpu_machine.wait(job)
    assert answers(gpu_machine, job) == [[0, 8 * GIB, 8 * GIB]]


def test_turns_keep_their_memory(gpu_machine):
    gpu_machine.up()
    job = gpu_machine.submit("--gpus", "1", "--shared", "--gpu-memory", "6G", *asked(f"alloc {7 * GIB}", "info"))
    gpu_machine.wait(job)
    assert answers(gpu_machine, job) == [[2], [0, 6 * GIB, 6 * GIB]]


@pytest.mark.parametrize("shares, expected", [(("0.7", "0.3"), (0.7, 0.3)), (("0.3..1", "0.1..1"), (0.75, 0.25))])
def test_two_jobs_with_shares_of_one_gpu_have_them_without_their_daemon(gpu_machine, shares, expected):
    """Unmodified programs that launch all the time, while gflowd is dead. The clock stands until then."""
    gpu_machine.up()
    clock = virtual_clock(gpu_machine.work / "clock", 3)
    seconds = 10
    commands = f"init\\ncontext 0\\nkeep_busy {seconds * 1000} 16 1000\\n"
    busy = f"LD_PRELOAD={CLOCK}:$LD_PRELOAD GFLOW_VIRTUAL_CLOCK={clock} {CLIENT} proc"
    script = ["bash", "-c", f"printf '{commands}' | {busy}"]
    jobs = [gpu_machine.submit("--gpus", f"6G,{share}", *script) for share in shares]
    held = [gpu_machine.running(job) for job in jobs]
    assert held[0]["gpu_indices"] == held[1]["gpu_indices"]
    gpu_machine.kill_daemon()
    with gpu_machine.fake.program(clock=clock) as third:
        third.get("keep_busy", 0, 1, 0)
    gpu_machine.up()
    for job, share in zip(jobs, expected, strict=True):
        assert gpu_machine.wait(job)[0]["status"] == "Finished", gpu_machine.log(job)
        assert abs(answers(gpu_machine, job)[0][1] / (seconds * 1e9) - share) < 0.03


def test_two_jobs_with_parts_of_both_gpus_have_them(gpu_machine):
    """A process for each GPU, all launching all the time: a job has its turn on both at once."""
    gpu_machine.up()
    clock = virtual_clock(gpu_machine.work / "clock", 5)
    seconds = 4
    busy = f"LD_PRELOAD={CLOCK}:$LD_PRELOAD GFLOW_VIRTUAL_CLOCK={clock} {CLIENT} proc"
    rank = "printf 'init\\ncontext {}\\nkeep_busy {} 16 1000\\n' | " + busy
    script = f"({rank.format(1, seconds * 1000)}) > /dev/null & {rank.format(0, seconds * 1000)}; wait"
    shares = ("0.7", "0.3")
    jobs = [gpu_machine.submit("--gpus", f"6G,2x{share}", "bash", "-c", script) for share in shares]
    for job in jobs:
        assert len(gpu_machine.running(job)["gpu_indices"]) == 2
        files = {file.name for file in (gpu_machine.state / f"attempts/{job}.1/share").iterdir()}
        assert files == {"account", "gang", "turn.0", "turn.1"}
    with gpu_machine.fake.program(clock=clock) as fifth:
        fifth.get("keep_busy", 0, 1, 0)
    for job, share in zip(jobs, shares, strict=True):
        assert gpu_machine.wait(job)[0]["status"] == "Finished", gpu_machine.log(job)
        assert abs(answers(gpu_machine, job)[0][1] / (seconds * 1e9) - float(share)) < 0.03, gpu_machine.log(job)
        assert "gflow:" not in gpu_machine.log(job)


def test_the_most_of_its_share_is_another_while_the_job_runs(gpu_machine):
    gpu_machine.up()
    clock = virtual_clock(gpu_machine.work / "clock", 1)
    gate = Gate(gpu_machine, "ranged")
    commands = f"{{ printf 'init\ncontext 0\n'; {gate.command}; printf 'keep_busy 10000 16 1000\n'; }}"
    busy = f"LD_PRELOAD={CLOCK}:$LD_PRELOAD GFLOW_VIRTUAL_CLOCK={clock} {CLIENT} proc"
    job = gpu_machine.submit("--gpus", "6G,0.1..1", "bash", "-c", f"{commands} | {busy}")
    gate.reached()
    assert "compute 0.1 guaranteed, up to 1\n" in gpu_machine.ok("gjob", "show", job)
    refused = gpu_machine.run("gjob", "update", job, "--gpus", "6G,0.2..1")
    assert refused.code != 0 and f"job {job} is running: its gpu share can no longer be changed" in refused.err
    gpu_machine.ok("gjob", "update", job, "--gpus", "6G,0.1..0.2")
    assert "compute 0.1 guaranteed, up to 0.2\n" in gpu_machine.ok("gjob", "show", job)
    # What was committed is said again where it may not have been.
    account = gpu_machine.state / f"attempts/{job}.1/share/account"
    assert limit_of(account) == 2_000
    gpu_machine.kill_daemon()
    set_limit(account, 10_000)
    gpu_machine.up()
    assert limit_of(account) == 2_000
    gate.open()
    assert gpu_machine.wait(job)[0]["status"] == "Finished", gpu_machine.log(job)
    assert abs(answers(gpu_machine, job)[0][1] / 10e9 - 0.2) < 0.01


@pytest.mark.parametrize("spoil", ["cut", "link", "gone"])
def test_an_account_that_its_user_spoiled_keeps_nobody_from_an_update(gpu_machine, spoil):
    gpu_machine.up()
    holder = Holder(gpu_machine, "spoiler", "6G,0.1..1")
    account = gpu_machine.state / f"attempts/{holder.job}.1/share/account"
    victim = gpu_machine.work / "victim"
    victim.write_bytes(bytes(account.stat().st_size))
    if spoil == "cut":
        os.truncate(account, 100)
    else:
        account.unlink()
    if spoil == "link":
        account.symlink_to(victim)
    gpu_machine.ok("gjob", "update", holder.job, "--gpus", "6G,0.1..0.2")
    assert not any(victim.read_bytes())
    assert not account.exists() or account.stat().st_size == (100 if spoil == "cut" else len(victim.read_bytes()))
    holder.gate.open()
    assert gpu_machine.wait(holder.job)[0]["status"] == "Finished"


def test_turns_are_held_to_no_share(gpu_machine):
    gpu_machine.up()
    holder = Holder(gpu_machine, "turns", "1", "info", more=("--shared", "--gpu-memory", "6G"))
    assert gpu_machine.job(holder.job)["gpu_limits"] == {"memory": "interposer", "compute": "none"}
    assert "GPU share     memory capped by the interposer, compute not limited\n" in gpu_machine.ok("gjob", "show", holder.job)
    holder.end()


def test_jobs_on_one_gpu_lock_one_file(gpu_machine):
    gpu_machine.up()
    jobs = [Holder(gpu_machine, name, "6G,0.5", "info") for name in ("one", "two", "three")]
    turns = [gpu_machine.state / f"attempts/{job.job}.1/share/turn" for job in jobs]
    of_gpu = [gpu_machine.job(job.job)["gpu_indices"] for job in jobs]
    assert len({turn.stat().st_ino for turn in turns}) == len({str(gpu) for gpu in of_gpu}) == 2
    for job in jobs:
        job.end()


def test_whole_gpus_are_whole(gpu_machine):
    gpu_machine.up()
    job = gpu_machine.submit("--gpus", "1", "bash", "-c", f"env; {' '.join(asked('info')[2:])}")
    gpu_machine.wait(job)
    log = gpu_machine.log(job)
    assert "LD_PRELOAD" not in log and "GFLOW_SHARE_DIR" not in log
    assert log.endswith(f" {16 * GIB}\n")


def test_all_processes_of_a_job_have_one_limit(gpu_machine):
    gpu_machine.up()
    gate = Gate(gpu_machine)
    held = f"{{ printf 'init\\ncontext 0\\nalloc {5 * GIB}\\n'; {gate.command}; }} | {CLIENT} proc"
    job = gpu_machine.submit("--gpus", "8G,0.5", "bash", "-c", f"{held} & wait")
    gate.reached()
    directory = next(gpu_machine.state.glob(f"attempts/{job}.*/share"))
    with gpu_machine.fake.program(LD_PRELOAD=str(INTERPOSER), GFLOW_SHARE_DIR=str(directory)) as other:
        other.start()
        while other.get("info")[0] > 3 * GIB:  # until the first has its own
            pass
        assert other.ask("alloc", 5 * GIB) == [2]
    gate.open()
    assert gpu_machine.wait(job)[0]["status"] == "Finished"


def test_libraries_of_the_user_stay_before_it(gpu_machine):
    gpu_machine.up()
    own = FAKE / "libnext_dlsym.so"
    show = "echo $LD_PRELOAD; echo $GFLOW_SHARE_DIR; echo $ASAN_OPTIONS"
    of_user = ("--export", f"ALL,LD_PRELOAD={own}")  # gbatch itself, which may be sanitized, is to start without it
    job = gpu_machine.submit(*of_user, "--gpus", "8G,0.5", "bash", "-c", show)
    gpu_machine.wait(job)
    preloaded, directory, sanitizer = gpu_machine.log(job).splitlines()
    assert preloaded.startswith(f"{own}:/") and preloaded.endswith("/libgflow-share.so")
    assert directory == str(gpu_machine.state / f"attempts/{job}.1/share")
    assert sanitizer.endswith("verify_asan_link_order=0")
    # A job that is submitted from within is another one.
    within = f"gbatch --gpus 1 bash -c '{show}'"
    outer = gpu_machine.submit(*of_user, "--gpus", "8G,0.5", "bash", "-c", within)
    gpu_machine.wait(outer)
    gpu_machine.wait(outer + 1)
    assert gpu_machine.log(outer + 1).splitlines()[:2] == [str(own), ""]


def test_without_the_library_nothing_is_promised(gpu_machine):
    helpers = gpu_machine.work / "libexec"
    helpers.mkdir()
    for name in ("gflow-shim", "gflow-gpumon", "gflow-tls"):
        os.symlink(BIN / name, helpers / name)
    gpu_machine.environment["GFLOW_LIBEXEC"] = str(helpers)
    gpu_machine.up()
    job = Holder(gpu_machine, "job", "7G,0.5", f"alloc {8 * GIB}")
    assert gpu_machine.job(job.job)["gpu_limits"] == {"memory": "none", "compute": "none"}
    assert f"GPU share     {NOT_ENFORCED} (none: libgflow-share.so is not installed" in gpu_machine.ok("gjob", "show", job.job)
    assert job.end()[0][0] == 0
    doctor = gpu_machine.run("gflow", "doctor").out
    assert "jobs that share a GPU can take memory from each other" in doctor
    # Nor is it by a library that LD_PRELOAD cannot name.
    spaced = gpu_machine.work / "lib exec"
    shutil.move(helpers, spaced)
    shutil.copy(INTERPOSER, spaced)
    gpu_machine.environment["GFLOW_LIBEXEC"] = str(spaced)
    gpu_machine.down()
    gpu_machine.up()
    assert gpu_machine.get("/api/v1/daemon")["enforcement_gpu_memory"].startswith("none: ")


def test_what_is_promised_is_decided_when_a_job_is_launched(gpu_machine):
    """The library may go while the daemon runs, and come back."""
    helpers = gpu_machine.work / "libexec"
    shutil.copytree(BIN, helpers, ignore=lambda _, names: [name for name in names if not name.startswith(("gflow-", "lib"))])
    gpu_machine.environment["GFLOW_LIBEXEC"] = str(helpers)
    gpu_machine.up()
    (helpers / "libgflow-share.so").rename(helpers / "away")
    job = Holder(gpu_machine, "job", "7G,0.5", f"alloc {8 * GIB}")
    why = f"{helpers}/libgflow-share.so: No such file or directory"
    assert gpu_machine.job(job.job)["gpu_limits"] == {"memory": "none", "compute": "none"}
    assert f"GPU share     {NOT_ENFORCED} (none: {why})\n" in gpu_machine.ok("gjob", "show", job.job)
    assert gpu_machine.get("/api/v1/daemon")["enforcement_gpu_memory"] == f"none: {why}"
    assert job.end()[0][0] == 0
    assert "ld.so" not in gpu_machine.log(job.job)
    (helpers / "away").rename(helpers / "libgflow-share.so")
    job = Holder(gpu_machine, "again", "7G,0.5", f"alloc {8 * GIB}")
    assert gpu_machine.job(job.job)["gpu_limits"]["memory"] == "interposer"
    assert job.end()[0] == [2]


def test_more_gpus_than_an_account_has_are_not_limited(bare):
    bare.devices = "sim:20xRTX3090"
    bare.up()
    for count, limit in ((16, "interposer"), (20, "none")):
        gate = Gate(bare, f"of-{count}")
        job = bare.submit("--gpus", count, "--shared", "--gpu-memory", "4G", "bash", "-c", gate.command)
        gate.reached()
        assert bare.job(job)["gpu_limits"] == {"memory": limit, "compute": "none"}
        gate.open()
        assert bare.wait(job)[0]["status"] == "Finished"


def test_gpus_of_others_are_not_limited(bare):
    """The library knows the CUDA driver."""
    file = bare.work / "lab.yaml"
    file.write_text("gpus:\n  - {model: H100, vendor: amd}\n")
    bare.devices = f"sim:{file}"
    bare.up()
    gate = Gate(bare)
    job = bare.submit("--gpus", "8G,0.5", "bash", "-c", gate.command)
    gate.reached()
    assert bare.job(job)["gpu_limits"] == {"memory": "none", "compute": "none"}
    gate.open()
    bare.wait(job)


def test_an_allocation_is_used_by_others(gpu_machine):
    """Who uses it is no process of a job: nothing is promised."""
    gpu_machine.up()
    out = gpu_machine.ok("galloc", "--gpus", "7G,0.5", "bash", "-c", "gjob show --json $GFLOW_JOB_ID; gjob show $GFLOW_JOB_ID; env")
    assert '"gpu_limits":{"memory":"none","compute":"none"}' in out.replace(" ", "")
    assert f"GPU share     {NOT_ENFORCED}\n" in out and "GFLOW_SHARE_DIR" not in out
