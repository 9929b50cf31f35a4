# SPDX-License-Identifier: Apache-2.0
"""A job whose whole GPU is lent: its memory is in host memory, its processes run on, and the first that calls the driver tells."""

import os
import re
import select
import struct
import subprocess
import threading
from pathlib import Path

import pytest
from fake_gpu import FAKE, GIB, INTERPOSER, MIB, OLD_FAKE, UUIDS, Account, Gpus
from machine import PATIENCE
from park_job import DONE, EACH, PARKED, REFUSED, RUNNING, Job

LOOKUPS = ["linked", "dlsym", "old_dlsym", "default", "deepbind", "proc", "proc_v1"]
OWN, LENT, WANTED = range(3)
NOT_FOUND = "500"
NO_LIBRARY = " does not load libgflow-share.so, and could not tell that it wants its GPU back\n"
REAL = (Path(__file__).parents[2] / "src/interpose/real.h").read_text()
HOOKS = set(re.findall(r"X\((cu\w+), cu", REAL.split("GFLOW_CUDA_CALLS")[0]))


class Whole(Account):
    """The account of a job with whole GPUs, and its pipe, of which this is the reader."""

    def __init__(self, folder, version=4):
        super().__init__(folder, {}, version=version)
        os.mkfifo(folder / "wanted")
        # To be written, too: without anybody who could, a pipe is at its end.
        self.pipe = os.open(folder / "wanted", os.O_RDWR | os.O_NONBLOCK)

    def told(self):
        """How often it was told so far."""
        try:
            return len(os.read(self.pipe, 100))
        except BlockingIOError:
            return 0

    def wait(self):
        assert select.select([self.pipe], [], [], PATIENCE)[0], "nobody told"


@pytest.fixture
def account(tmp_path):
    made = Whole(tmp_path / "share")
    yield made
    os.close(made.pipe)


def lend(job, account):
    assert account.lent() == OWN and account.told() == 0
    account.set_lent(LENT)
    assert job.ask("park", "--watched", account.file) == (DONE, f"{UUIDS[0]} {len(job.programs) * EACH}\n")
    assert job.used() == 0 and job.standings() == {PARKED}


def asks_while_lent(job, account, ask):
    """Its answer: it comes once the memory is back, for which it told, once."""
    lend(job, account)
    answers = []
    asks = threading.Thread(target=lambda: answers.append(ask()))
    asks.start()
    account.wait()
    assert account.lent() == WANTED and job.used() == 0 and not answers
    assert job.ask("unpark", "--room", f"{UUIDS[0]}={len(job.programs) * EACH}") == (DONE, "")
    account.set_lent(OWN)
    asks.join(PATIENCE)
    assert account.told() == 1 and job.standings() == {RUNNING}
    return answers[0]


@pytest.mark.parametrize("how", LOOKUPS)
def test_a_call_tells_and_goes_on_with_its_data_however_the_driver_is_found(gpus, account, how):
    job = Job(gpus, 1, account, how=how)
    [program], [block], [its_sum] = job.programs, job.blocks, job.sums
    assert asks_while_lent(job, account, lambda: program.get("sum", block, MIB)) == its_sum  # which has no hook
    more = asks_while_lent(job, account, lambda: program.get("alloc", 9 * GIB))  # which has one
    program.get("free", more)
    assert asks_while_lent(job, account, lambda: program.get("info"))[1] == 16 * GIB
    assert asks_while_lent(job, account, lambda: program.get("launch", 10)) == []
    assert asks_while_lent(job, account, lambda: program.get("sync_context")) == []
    assert asks_while_lent(job, account, lambda: program.get("launch", 10, 0, 2)) == []
    assert account.lent() == OWN and job.is_as_it_was()
    assert account.processes() == job.pids()


def test_none_of_a_job_tells_while_none_calls(gpus, account):
    """Its processes run on: what they do beside the GPU is done."""
    job = Job(gpus, 2, account)
    lend(job, account)
    assert [program.get("time") > 0 for program in job.programs] == [True, True]
    assert account.told() == 0 and account.lent() == LENT
    answers = []
    asks = [threading.Thread(target=lambda program=program: answers.append(program.get("info")[1])) for program in job.programs]
    for thread in asks:
        thread.start()
    account.wait()
    assert job.ask("unpark") == (DONE, "")
    assert not answers and account.lent() == WANTED
    account.set_lent(OWN)
    for thread in asks:
        thread.join(PATIENCE)
    assert answers == [16 * GIB] * 2 and account.told() == 1
    assert job.is_as_it_was() and account.told() == 0


@pytest.mark.parametrize("how", ["linked", "proc"])
def test_of_threads_that_call_at_once_one_tells(gpus, account, how):
    job = Job(gpus, 1, account, how=how)
    for _ in range(5):
        assert asks_while_lent(job, account, lambda: job.programs[0].get("read_at_once", job.blocks[0], MIB)) == 8
    assert job.is_as_it_was()
    for _ in range(200):  # and where nothing was taken
        with account.lent_until_wanted():
            assert job.programs[0].get("read_at_once", job.blocks[0], 64) == 8
        assert account.told() == 1


@pytest.mark.parametrize("how", ["linked", "dlsym", "proc"])
def test_the_driver_gets_all_arguments_as_they_were(gpus, account, how):
    job = Job(gpus, 1, account, how=how)
    [program] = job.programs
    stream = program.get("stream")
    for _ in range(2):
        assert program.get("kernel_arguments", stream) == 1 and program.get("float_arguments") == 1
    assert asks_while_lent(job, account, lambda: program.get("kernel_arguments", stream)) == 1
    assert asks_while_lent(job, account, lambda: program.get("float_arguments")) == 1
    assert program.get("kernel_arguments", stream) == 1 and program.get("float_arguments") == 1


@pytest.mark.parametrize("how", ["linked", "proc"])
def test_the_child_of_a_fork_tells_by_itself(gpus, account, how):
    """It has a slot of its own from its first call on; what it looked up was looked up by its parent."""
    job = Job(gpus, 1, account, how=how, prepare=lambda program: program.text("fork"))
    [parent] = job.pids()
    child = int(Path(f"/proc/{parent}/task/{parent}/children").read_text())
    assert child in account.processes()
    job.pids = lambda: [child]
    assert asks_while_lent(job, account, lambda: job.programs[0].get("sum", job.blocks[0], MIB)) == job.sums[0]
    assert job.is_as_it_was()


def test_a_process_without_the_library_keeps_its_memory(gpus, account):
    """And so do the others of its job."""
    job = Job(gpus, 2, account, bare=1)
    [bare] = set(job.pids()) - set(account.processes())
    assert job.ask("park", "--watched", account.file) == (REFUSED, f"process {bare} (cuda_client){NO_LIBRARY}")
    assert job.is_as_it_was()
    assert job.ask("park")[0] == DONE and job.ask("unpark") == (DONE, "")


def test_nor_does_one_that_comes_while_the_others_are_locked(gpus, account):
    """A kernel keeps the lock of the first waiting meanwhile."""
    job = Job(gpus, 2, account, bare=1, late=1)
    first, late = job.programs
    first.get("launch", 0)
    [known] = account.processes()
    begun = job.begin("park", "--watched", account.file)
    while job.watch.ask("asked_of", known) != [0, 1]:
        assert begun.poll() is None
    late.get("init")
    [bare] = set(job.pids()) - {known}
    first.get("tell", 0)
    assert job.answer(begun) == (REFUSED, f"process {bare} (cuda_client){NO_LIBRARY}")
    assert job.standings() == {RUNNING} and first.get("sum", job.blocks[0], MIB) == job.sums[0]


def test_a_process_of_which_it_is_not_known_keeps_its_memory(gpus, account):
    """Its slot is that of another process: of another pid, pid namespace or time."""
    job = Job(gpus, 1, account)
    [pid] = job.pids()
    content = account.file.read_bytes()
    for at, width, value in ((0, "<I", pid + 1), (4, "<I", 1), (8, "<Q", 1)):
        changed = bytearray(content)
        struct.pack_into(width, changed, account.PROCESSES + at, value)
        account.file.write_bytes(changed)
        assert job.ask("park", "--watched", account.file) == (REFUSED, f"process {pid} (cuda_client){NO_LIBRARY}")
    account.file.write_bytes(content)
    assert job.is_as_it_was() and job.ask("park", "--watched", account.file)[0] == DONE and job.ask("unpark") == (DONE, "")


@pytest.mark.parametrize(
    "spoil",
    [
        lambda account: account.file.unlink(),
        lambda account: account.file.write_bytes(b"x" * account.file.stat().st_size),
        lambda account: os.truncate(account.file, account.file.stat().st_size + 1),
        lambda account: Account(account.folder, {UUIDS[0]: GIB}),
        lambda account: Account(account.folder, {}, version=3),
    ],
)
def test_what_is_no_account_of_whole_gpus_is_refused(gpus, account, spoil):
    job = Job(gpus, 1)
    spoil(account)
    status, why = job.ask("park", "--watched", account.file)
    assert status == REFUSED and str(account.file) in why and job.is_as_it_was()


def test_one_that_tells_does_not_wait_for_a_reader(gpus, account):
    """gflowd is away, or its pipe is full, or something else is there: the account says it."""
    job = Job(gpus, 1, account)
    [program] = job.programs
    pipe = account.folder / "wanted"
    os.close(account.pipe)
    for spoil in (lambda: None, pipe.unlink, lambda: pipe.symlink_to("/dev/full"), lambda: (pipe.unlink(), pipe.mkdir())):
        spoil()
        with account.lent_until_wanted():
            assert program.get("sum", job.blocks[0], MIB) == job.sums[0]
    pipe.rmdir()
    os.mkfifo(pipe)
    account.pipe = os.open(pipe, os.O_RDWR | os.O_NONBLOCK)
    filled = os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
    with pytest.raises(BlockingIOError):
        while True:
            os.write(filled, b"x" * 4096)
    with account.lent_until_wanted():
        assert program.get("sum", job.blocks[0], MIB) == job.sums[0]
    os.close(filled)
    assert job.is_as_it_was()


def test_hooks_within_a_program_tell(gpus, account):
    """Where sanitizers see them, in a build that has some."""
    with gpus.program(account, "within") as program:
        program.start()
        assert account.processes() == [program.process.pid]
        block = program.get("alloc", 9 * GIB)
        its_sum = program.get("fill", block, MIB, 5)
        for ask in (("info",), ("sum", block, MIB), ("launch", 1), ("read_at_once", block, MIB), ("float_arguments",)):
            with account.lent_until_wanted():
                program.get(*ask)
            assert account.told() == 1
        assert program.get("sum", block, MIB) == its_sum and account.told() == 0
        program.get("stress", 1, 300)
        assert program.end() == "" and program.process.returncode == 0


@pytest.mark.parametrize("how", LOOKUPS)
def test_nothing_is_limited(gpus, account, how):
    with gpus.program(account, how) as program:
        program.start()
        program.get("alloc", 9 * GIB)
        assert program.get("info")[1] == 16 * GIB and program.get("nvml", 0)[0] == 16 * GIB
        program.get("stress", 1, 100)
        assert program.end() == ""


def test_a_child_that_cannot_take_the_lock_tells_and_has_no_slot(gpus, account):
    """Of a clone(2) past the C library."""
    with gpus.program(account) as program:
        assert program.text("clone") == "0 child\n"
        program.start()
        with account.lent_until_wanted():
            assert program.get("info")[1] == 16 * GIB
        assert account.told() == 1
        assert account.processes() == [program.process.pid]
        assert program.end() == ""


# -- look-ups


def where(gpus, account, how, **more):
    with gpus.program(account, how, **more) as program:
        rows = program.text("where").split()[1:]
    return dict(row.split("=") for row in rows)


@pytest.mark.parametrize("how", [how for how in LOOKUPS if how != "linked"])
def test_all_that_is_looked_up_is_a_stub_but_what_locks(gpus, account, how):
    found = where(gpus, account, how)
    limited = where(gpus, Account(gpus.folder / "limited", {UUIDS[0]: GIB}), how)
    plain = where(gpus, None, how, LD_PRELOAD=str(INTERPOSER))
    assert found.keys() == limited.keys() == plain.keys() and len(found) > 40
    for name, place in found.items():
        of_driver = "libcuda.so.1:" + plain[name].split(":")[1]
        assert plain[name] == of_driver
        assert limited[name] == (of_driver.replace("libcuda.so.1", "libgflow-share.so") if of_driver.split(":")[1] in HOOKS else of_driver)
        assert place == of_driver if name.startswith("cuCheckpoint") else place.startswith("libgflow-share.so"), name


def test_what_the_driver_has_not_is_not_there(tmp_path, account):
    gpus = Gpus(tmp_path, driver=OLD_FAKE)
    for how in ("dlsym", "default", "proc"):
        found = where(gpus, account, how)
        assert "cuMemAlloc" in found and not any("MemAllocAsync" in name or "Checkpoint" in name for name in found)


# What ADDRESS(NAME) is of: the driver, the library, another file, or nothing.
OF = """
import ctypes, os, sys
def of(address):
    if not address:
        return "nothing"
    for line in open("/proc/self/maps"):
        words = line.split()
        start, end = (int(word, 16) for word in words[0].split("-"))
        if start <= address < end:
            return os.path.basename(words[-1])
dlsym = ctypes.CDLL(None).dlsym
dlsym.restype, dlsym.argtypes = ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_char_p]
"""


def run_python(gpus, script, account=None, libraries=(INTERPOSER,), **more):
    environment = gpus.environment | {"LD_PRELOAD": ":".join(map(str, libraries))} | more
    if account is not None:
        environment["GFLOW_SHARE_DIR"] = str(account.folder)
    done = subprocess.run(["/usr/bin/python3", "-c", OF + script], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and done.stderr == "", done.stderr
    return done.stdout.split()


def test_one_function_of_the_driver_has_one_stub(gpus, account):
    script = """
cuda = ctypes.CDLL("libcuda.so.1", ctypes.RTLD_GLOBAL)
def by_name(name, handle=cuda._handle):
    return dlsym(handle, name.encode())
def by_driver(name):
    found = ctypes.c_void_p()
    cuda.cuGetProcAddress_v2(name.encode(), ctypes.byref(found), 12090, ctypes.c_uint64(0), None)
    return found.value
for base, name in (("cuMemAlloc", "cuMemAlloc_v2"), ("cuInit", "cuInit"), ("cuMemcpyDtoH", "cuMemcpyDtoH_v2")):
    stub = by_name(name)
    print(of(stub), stub == by_name(name) == by_name(name, None) == by_driver(base) == by_driver(base))
print(len({by_name(name) for name in ("cuInit", "cuMemAlloc_v2", "cuMemcpyDtoH_v2", "cuDeviceGet")}))
print(of(by_driver("cuCheckpointProcessLock")), of(by_name("cuCheckpointProcessLock")), of(by_name("cuWhatever")), of(by_name("cuMemcpy")))
"""
    stub = ["libgflow-share.so", "True"]
    assert run_python(gpus, script, account) == [*stub, *stub, *stub, "4", "libcuda.so.1", "libcuda.so.1", "nothing", "nothing"]


@pytest.mark.parametrize("kind", ["none", "limited", "whole", "older"])
def test_names_of_other_libraries_are_their_own(gpus, account, tmp_path, kind):
    """Also one of the driver's names, in a library that is asked for it by itself."""
    limited, older = Account(tmp_path / "limited", {UUIDS[0]: GIB}), Whole(tmp_path / "older", 3)
    accounts = {"none": None, "limited": limited, "whole": account, "older": older}
    script = f"""
cuda = ctypes.CDLL("libcuda.so.1")
own = ctypes.CDLL("{FAKE}/libplugin.so")
print(of(dlsym(own._handle, b"cublasCreate_v2")), own.cublasCreate_v2(), of(dlsym(own._handle, b"cuProfilerStart")), own.cuProfilerStart())
print(of(dlsym(cuda._handle, b"cuInit")), of(dlsym(cuda._handle, b"cuMemcpyHtoD_v2")), of(dlsym(cuda._handle, b"cuProfilerStart")))
"""
    of_plugin = ["libplugin.so", "7", "libplugin.so", "8"]
    of_driver = ["libgflow-share.so" if kind == "whole" else "libcuda.so.1"] * 2
    assert run_python(gpus, script, accounts[kind]) == [*of_plugin, *of_driver, "nothing"]


@pytest.mark.parametrize("kind", ["none", "limited", "whole"])
def test_one_that_stands_before_or_behind_finds_the_driver_next(gpus, account, tmp_path, kind):
    """A library that wraps functions of the driver finds no stub where nothing is watched, and nothing where there is nothing."""
    accounts = {"none": None, "limited": Account(tmp_path / "limited", {UUIDS[0]: GIB}), "whole": account}
    wrapper = FAKE / "libnext_dlsym.so"
    script = f"""
next_of = ctypes.CDLL("{wrapper}").next_of
next_of.restype, next_of.argtypes = ctypes.c_void_p, [ctypes.c_char_p]
print(of(next_of(b"cuInit")), of(dlsym(None, b"cuInit")))
ctypes.CDLL("libcuda.so.1", ctypes.RTLD_GLOBAL)
print(of(next_of(b"cuInit")), of(dlsym(None, b"cuInit")), of(next_of(b"cuMemcpy")), of(dlsym(None, b"cuMemcpy")))
"""
    before = run_python(gpus, script, accounts[kind], (wrapper, INTERPOSER))
    behind = run_python(gpus, script, accounts[kind], (INTERPOSER, wrapper))
    driver = "libgflow-share.so" if kind == "whole" else "libcuda.so.1"
    assert before == ["nothing", "nothing", driver, driver, "nothing", "nothing"]
    assert behind == ["nothing", "nothing", "libcuda.so.1", driver, "nothing", "nothing"]


@pytest.mark.parametrize("kind", ["none", "limited", "whole"])
def test_one_that_is_linked_to_no_driver_is_told_that_there_is_none(gpus, account, tmp_path, kind):
    """Until there is one, which others loaded for themselves."""
    accounts = {"none": None, "limited": Account(tmp_path / "limited", {UUIDS[0]: GIB}), "whole": account}
    script = f"""
linked = ctypes.CDLL("{FAKE}/libnext_dlsym.so")
before = linked.call_linked()
ctypes.CDLL("libcuda.so.1")
print(before, linked.call_linked())
"""
    assert run_python(gpus, script, accounts[kind]) == [NOT_FOUND, "0"]
    assert account.told() == 0 and len(account.processes()) == (kind == "whole")
