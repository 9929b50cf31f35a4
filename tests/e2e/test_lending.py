# SPDX-License-Identifier: Apache-2.0
"""Jobs that leave their GPU idle and lend it: gflowd, gflow-park, the interposer and jobs on the machine of tests/fake_cuda."""

import os
import select
import signal

from fake_gpu import FAKE, GIB, MIB, OLD_FAKE
from machine import PATIENCE, stands
from test_parked_jobs import CLIENT, EACH, GpuJob, becomes, killed, up

OWNER = ("--gpus", "1")
BORROWER = ("--gpus", "1", "--preemptible")
URGENT = ("--gpus", "1", "--priority", "200")


def lends_after(machine, time="1s"):
    machine.environment["GFLOW_SHARING__LEND_IDLE_AFTER"] = time
    up(machine)


def daemon_log(machine):
    return (machine.logs / "gpu_resource_manager.log").read_text()


def lent(machine):
    """The owner, which has filled a GiB of its GPU, and who borrows it with all the rest."""
    owner = GpuJob(machine, "owner", *OWNER).fill(GIB)
    borrower = GpuJob(machine, "borrower", *BORROWER).fill(15 * GIB)
    assert owner.shown()["lends"]
    return owner, borrower


def test_an_idle_gpu_is_lent_and_comes_back_with_the_first_call(gpu_machine):
    lends_after(gpu_machine)
    owner, borrower = lent(gpu_machine)
    shown = owner.shown()
    assert (shown["status"], shown["parked"]) == ("Running", {"state": "parked", "bytes": EACH, "refused": ""})
    assert not stands(shown["pid"])
    assert "its GPU is lent while it is idle; 1.29G of GPU memory are in host memory until it uses it" in " ".join(
        gpu_machine.ok("gjob", "show", owner.job).split()
    )
    assert "runs; GPU 0 is lent to others until it uses it again." in gpu_machine.ok("gjob", "why", owner.job)
    assert borrower.has_its_memory()
    # One call that moves memory and is hooked for nothing else.
    assert owner.has_its_memory()
    assert owner.until(None)["status"] == "Running"
    assert not owner.shown()["lends"]
    assert borrower.shown()["status"] == "Queued"
    assert borrower.shown()["spec"]["name"] == "borrower"
    assert not list(gpu_machine.state.glob("attempts/*/park*"))
    # It has been used now, and once it is idle again the borrower starts anew, from nothing.
    assert owner.until("parked")["lends"]
    gpu_machine.running(borrower.job)
    assert owner.has_its_memory()


def test_nobody_comes_before_its_owner(gpu_machine):
    lends_after(gpu_machine)
    owner, borrower = lent(gpu_machine)
    urgent = GpuJob(gpu_machine, "urgent", *URGENT)
    assert owner.has_its_memory()
    assert urgent.shown()["status"] == "Queued"
    assert f"job {owner.job}" in gpu_machine.ok("gjob", "why", urgent.job)
    owner.cancel()
    urgent.fill(15 * GIB)


def test_without_the_setting_or_somebody_who_gives_it_back_nothing_is_lent(gpu_machine):
    lends_after(gpu_machine)
    owner = GpuJob(gpu_machine, "owner", *OWNER).fill(GIB)
    waiting = GpuJob(gpu_machine, "waiting", *OWNER)
    becomes(lambda: (owner.shown()["gpu_idle_seconds"] or 0) > 2)
    assert owner.shown()["parked"] is None and waiting.shown()["status"] == "Queued"
    # It is told what would help, and that does.
    command = f"gjob update {waiting.job} --preemptible=requeue"
    assert command in gpu_machine.ok("gjob", "why", waiting.job)
    gpu_machine.ok(*command.split())
    gpu_machine.running(waiting.job)
    assert owner.has_its_memory()
    owner.cancel()
    waiting.cancel()
    gpu_machine.down()
    lends_after(gpu_machine, "0s")
    owner = GpuJob(gpu_machine, "other", *OWNER).fill(GIB)
    waiting = GpuJob(gpu_machine, "borrower", *BORROWER)
    becomes(lambda: (owner.shown()["gpu_idle_seconds"] or 0) > 2)
    assert owner.shown()["parked"] is None and waiting.shown()["status"] == "Queued"


def test_one_that_could_not_tell_is_left_alone(gpu_machine):
    lends_after(gpu_machine)
    owner = GpuJob(gpu_machine, "owner", *OWNER, before="env -u LD_PRELOAD ").fill(GIB)
    waiting = GpuJob(gpu_machine, "waiting", *BORROWER)
    becomes(lambda: "keeps the GPU that it leaves idle: process" in daemon_log(gpu_machine))
    becomes(lambda: not owner.shown()["lends"])
    assert owner.has_its_memory()
    assert waiting.shown()["status"] == "Queued"


def test_what_is_wanted_while_no_gflowd_runs_is_heard_by_the_next(gpu_machine):
    lends_after(gpu_machine)
    owner, borrower = lent(gpu_machine)
    gpu_machine.kill_daemon()
    owner.asks.write(f"sum {owner.block} {MIB}\n")
    owner.asks.flush()
    up(gpu_machine)
    assert int(owner.answers.readline().split()[1]) == owner.sum
    assert owner.until(None)["status"] == "Running"
    assert borrower.shown()["status"] == "Queued"


def test_gflowd_killed_again_and_again(gpu_machine):
    """Each step of lending and giving back may be the last one of its daemon."""
    lends_after(gpu_machine)
    owner = GpuJob(gpu_machine, "owner", *OWNER).fill(GIB)
    for number in range(4):
        borrower = GpuJob(gpu_machine, f"borrower{number}", *BORROWER)
        if number % 2 == 0:
            becomes(lambda: owner.shown()["parked"] is not None)
            killed(gpu_machine)
        borrower.fill(15 * GIB)
        killed(gpu_machine)
        assert borrower.has_its_memory() and owner.shown()["lends"]
        gpu_machine.ok("gcancel", borrower.job)
        assert owner.has_its_memory(), number
        killed(gpu_machine)
        assert owner.until(None)["status"] == "Running"


def test_it_ends_as_any_other_while_its_gpu_is_lent(gpu_machine):
    lends_after(gpu_machine)
    owner, borrower = lent(gpu_machine)
    os.kill(owner.shown()["pid"], signal.SIGTERM)
    gpu_machine.wait(owner.job)
    assert owner.shown()["status"] in ("Failed", "Finished")
    assert borrower.has_its_memory() and borrower.shown()["status"] == "Running"


def test_a_pipe_that_is_none_any_more_lends_nothing(gpu_machine):
    lends_after(gpu_machine)
    owner = GpuJob(gpu_machine, "owner", *OWNER).fill(GIB)
    pipe = gpu_machine.state / f"attempts/{owner.job}.1/share/wanted"
    pipe.unlink()
    pipe.write_text("")
    waiting = GpuJob(gpu_machine, "waiting", *BORROWER)
    becomes(lambda: "is no pipe any more" in daemon_log(gpu_machine))
    becomes(lambda: not owner.shown()["lends"])
    assert owner.has_its_memory()
    assert waiting.shown()["status"] == "Queued"


def test_who_cannot_reach_the_pipe_has_it_back_too(gpu_machine):
    """As one that has no descriptor left, or another root: the account alone says so."""
    lends_after(gpu_machine)
    owner, borrower = lent(gpu_machine)
    (gpu_machine.state / f"attempts/{owner.job}.1/share/wanted").unlink()
    assert owner.has_its_memory()
    assert borrower.shown()["status"] == "Queued"


def test_a_borrower_that_stands_and_keeps_its_memory_makes_room(gpu_machine):
    lends_after(gpu_machine)
    owner, borrower = lent(gpu_machine)
    borrower.get("managed", MIB)  # so that it cannot be parked
    refused = gpu_machine.run("gjob", "update", borrower.job, "--preemptible=none")
    assert refused.code != 0 and f"job {borrower.job} has a GPU that another job lends" in refused.err
    gpu_machine.ok("gjob", "suspend", borrower.job)
    becomes(lambda: stands(borrower.shown()["pid"]))
    assert owner.has_its_memory()
    assert borrower.shown()["status"] == "Queued"


def test_parts_that_are_given_back_one_by_one_go_to_nobody_else(gpu_machine):
    lends_after(gpu_machine)
    owner = GpuJob(gpu_machine, "owner", *OWNER).fill(GIB)
    parts = [gpu_machine.submit("--gpus", "7G,0.5", "--preemptible", "--name", name, "sleep", "1000") for name in ("one", "two")]
    for part in parts:
        gpu_machine.running(part)
    assert owner.has_its_memory()
    assert [gpu_machine.job(part)["attempt"] for part in parts] == [1, 1]
    assert owner.until(None)["status"] == "Running"


def test_a_program_that_comes_while_it_is_lent_waits_too(gpu_machine):
    """Nothing of it is locked: it would use the GPU beside the borrower."""
    lends_after(gpu_machine)
    owner, borrower = lent(gpu_machine)
    environment = f"/proc/{owner.shown()['pid']}/environ"
    with open(environment, "rb") as file:
        inherited = dict(entry.split(b"=", 1) for entry in file.read().split(b"\0") if b"=" in entry)
    more = {name.decode(): value.decode() for name, value in inherited.items()}
    with gpu_machine.fake.program(**more) as second:
        second.start()
        assert borrower.shown()["status"] == "Queued"
        second.get("alloc", 9 * GIB)
        assert owner.has_its_memory()


def test_suspended_and_resumed_by_hand_it_has_its_gpu(gpu_machine):
    lends_after(gpu_machine)
    owner, borrower = lent(gpu_machine)
    gpu_machine.ok("gjob", "suspend", owner.job)
    becomes(lambda: stands(owner.shown()["pid"]))
    assert borrower.has_its_memory()
    gpu_machine.ok("gjob", "resume", owner.job)
    assert owner.has_its_memory()
    assert borrower.shown()["status"] == "Queued"


def test_one_that_executes_a_program_without_the_library_is_left_alone(gpu_machine):
    lends_after(gpu_machine)
    script = "import ctypes, os; ctypes.CDLL('libcuda.so.1').cuInit(0); del os.environ['LD_PRELOAD']; "
    script += f"os.execv('{CLIENT}', ['{CLIENT}', 'proc'])"
    owner = GpuJob(gpu_machine, "owner", *OWNER, before=f'/usr/bin/python3 -c "{script}" ').fill(GIB)
    GpuJob(gpu_machine, "waiting", *BORROWER)
    becomes(lambda: "keeps the GPU that it leaves idle: process" in daemon_log(gpu_machine))
    becomes(lambda: not owner.shown()["lends"])
    assert owner.has_its_memory()


def test_gflowd_killed_while_its_memory_comes_back(gpu_machine):
    """What comes back is another gflowd's then, which is told nothing of lending."""
    lends_after(gpu_machine)
    owner = GpuJob(gpu_machine, "owner", *OWNER).fill(GIB)
    for call in (1, 4, 7):
        borrower = GpuJob(gpu_machine, f"borrower{call}", *BORROWER).fill(15 * GIB)
        # gflow-park is killed in that call of the driver, and its daemon after it.
        gpu_machine.environment["GFLOW_FAKE_CUDA_KILLED_AT"] = str(call)
        killed(gpu_machine)
        owner.asks.write(f"sum {owner.block} {MIB}\n")
        owner.asks.flush()
        becomes(lambda: owner.shown()["parked"] is None or owner.shown()["parked"]["state"] == "ending")
        del gpu_machine.environment["GFLOW_FAKE_CUDA_KILLED_AT"]
        killed(gpu_machine)
        assert select.select([owner.answers], [], [], PATIENCE)[0], call
        assert int(owner.answers.readline().split()[1]) == owner.sum
        borrower.cancel()
        assert owner.has_its_memory()
        assert owner.until(None)["status"] == "Running"


def test_a_job_that_could_not_be_told_is_no_warning_any_more_once_it_is(gpu_machine):
    """On a driver that parks nothing: it is suspended and resumed as it is."""
    gpu_machine.environment["LD_LIBRARY_PATH"] = f"{OLD_FAKE}:{FAKE}"
    lends_after(gpu_machine, "1h")
    job = gpu_machine.submit(*OWNER, "sleep", "1000")
    gpu_machine.running(job)
    account = gpu_machine.state / f"attempts/{job}.1/share/account"
    account.unlink()
    account.mkdir()
    gpu_machine.ok("gjob", "suspend", job)
    gpu_machine.ok("gjob", "resume", job)
    becomes(lambda: any("account" in warning for warning in gpu_machine.get("/api/v1/daemon")["warnings"]))
    account.rmdir()
    becomes(lambda: not gpu_machine.get("/api/v1/daemon")["warnings"])
