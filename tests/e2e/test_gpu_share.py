# SPDX-License-Identifier: Apache-2.0
"""The interposer by itself: programs on the fake driver that may have 8 GiB of a GPU of 16."""

import os
import random
import re
import signal
import subprocess

import pytest
from fake_gpu import CONTEXT, FAKE, GIB, INTERPOSER, MIB, OLD_FAKE, OUT_OF_MEMORY, UUIDS, Account, Gpus

LOOKUPS = ["linked", "dlsym", "old_dlsym", "default", "deepbind", "proc", "proc_v1"]
LIMIT = 8 * GIB


@pytest.fixture
def account(tmp_path):
    return Account(tmp_path / "share", {UUIDS[0]: LIMIT})


@pytest.fixture
def program(gpus, account):
    with gpus.program(account) as running:
        running.start()
        yield running


def driver_has(program, device=0):
    """(bytes of all processes, the most they ever had), without what contexts take."""
    used, peak = program.get("used", device)
    return used - CONTEXT, peak - CONTEXT


@pytest.mark.parametrize("how", LOOKUPS)
def test_the_limit_is_the_limit_however_the_driver_is_found(gpus, account, how):
    with gpus.program(account, how) as program:
        program.start()
        assert program.ask("alloc", 9 * GIB) == OUT_OF_MEMORY
        whole = program.get("alloc", LIMIT)
        assert program.ask("alloc", 1) == OUT_OF_MEMORY
        assert driver_has(program) == (LIMIT, LIMIT)
        program.get("free", whole)
        assert account.used() == 0
        program.get("alloc", LIMIT)
        # Asked at all of the driver: once for each that fits.
        assert program.text("calls", "cuMemAlloc_v2") == "0 2\n"
        assert program.end() == ""


@pytest.mark.parametrize("how", [*LOOKUPS, "dlmopen"])
def test_without_an_account_nothing_is_changed(gpus, how):
    with gpus.program(None, how, LD_PRELOAD=str(INTERPOSER)) as program:
        program.start()
        program.get("alloc", 9 * GIB)
        assert program.get("info")[1] == 16 * GIB
        if how != "linked":  # whose calls the loader has bound
            assert "libgflow-share" not in program.text("where")
        assert program.end() == ""


def test_hooks_have_the_arguments_of_what_they_stand_for(gpus, account):
    """Also through cuGetProcAddress of any version, and for a default stream for each thread."""
    with gpus.program(account, "dlsym") as program:
        plain = program.text("where").split()[1:]
    assert "cuMemAlloc=libgflow-share.so:cuMemAlloc_v2" in plain
    assert "cuLaunchKernel=libgflow-share.so:cuLaunchKernel" in plain
    assert "cuStreamCreate=libcuda.so.1:cuStreamCreate" in plain
    of_cuda_11 = [row for row in plain if not row.startswith("cuCheckpoint")]
    for how, expected in (("proc", plain), ("proc_v1", of_cuda_11)):
        with gpus.program(account, how) as program:
            assert [row for row in program.text("where").split()[1:] if "StreamGet" not in row] == expected
    with gpus.program(account, "proc", ["ptsz"]) as program:
        found = program.text("where")
        assert "cuMemAllocAsync=libgflow-share.so:cuMemAllocAsync_ptsz" in found
        program.start()
        program.get("async", GIB)
        assert program.text("calls", "cuMemAllocAsync_ptsz") == "0 1\n"


def test_what_a_newer_driver_has_anew_is_hooked(gpus, account):
    """As PyTorch on a driver of CUDA 13 looks it up."""
    gpus.file.write_text(gpus.file.read_text().replace("driver 12090", "driver 13000"))
    with gpus.program(account, "proc_13") as program:
        assert "cuCtxSynchronize=libgflow-share.so:cuCtxSynchronize_v2" in program.text("where")
        assert program.end() == ""


def test_what_the_driver_has_not_is_not_there(tmp_path, account):
    gpus = Gpus(tmp_path, driver=OLD_FAKE)
    for how in ("dlsym", "default", "proc"):
        with gpus.program(account, how) as program:
            found = program.text("where")
            assert "cuMemAlloc=" in found and "MemAllocAsync" not in found
            program.start()
            assert program.ask("alloc", 9 * GIB) == OUT_OF_MEMORY


def test_a_second_copy_of_the_driver_is_said_not_to_be_limited(gpus, account):
    with gpus.program(account, "dlmopen") as program:
        program.start()
        program.get("alloc", 9 * GIB)
        assert "not held to its part of the GPU in full: cu" in program.end()


KINDS = {  # what takes 1 GiB, what would take 9, and how it is given back
    "alloc": ([GIB], [9 * GIB], "free"),
    "managed": ([GIB], [9 * GIB], "free"),
    "pitch": ([1000, 1 << 20], [1000, 9 << 20], "free"),  # rows of 1024 bytes
    "array": ([1 << 14, 1 << 13], [1 << 14, 9 << 13], "free_array"),  # of two floats
    "array3d": ([1 << 10, 1 << 10, 1 << 9], [1 << 10, 1 << 10, 9 << 9], "free_array"),  # of halves
    "async": ([GIB], [9 * GIB], "free_async"),
    "create": ([GIB, 1], [9 * GIB, 1], "release"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_memory_counts(program, account, kind):
    fits, too_much, give_back = KINDS[kind]
    assert program.ask(kind, *too_much) == OUT_OF_MEMORY
    assert account.used() == 0
    handle = program.get(kind, *fits)
    assert account.used() == GIB == driver_has(program)[0]
    rest = program.get("alloc", LIMIT - GIB)
    assert program.ask(kind, *fits) == OUT_OF_MEMORY
    program.get("free", rest)
    program.get(give_back, handle)
    program.get("sync")
    assert account.used() == 0 == driver_has(program)[0]
    assert driver_has(program)[1] == LIMIT


FORMATS = {  # of elements: format, channels, bits of an element
    "float x 4": (0x20, 4, 128),
    "bytes x 1": (0x01, 1, 8),
    "UNORM_INT8X4": (0xC2, 4, 32),
    "SNORM_INT16X2": (0xCA, 2, 32),
    "BC1": (0x91, 4, 4),
    "BC5": (0x99, 2, 8),
    "BC6H": (0x9B, 3, 8),
    "BC7": (0x9E, 4, 8),
    "NV12": (0xB0, 3, 12),
    "P010": (0x9F, 3, 24),
    "UNORM_INT_101010_2": (0x50, 4, 32),
}


@pytest.mark.parametrize("kind", FORMATS)
def test_an_array_counts_what_its_format_takes(program, account, kind):
    number, channels, bits = FORMATS[kind]
    made = program.get("array3d", 1024, 1022, 0, number, channels)
    rows = 1024 if kind.startswith("BC") else 1022  # in blocks of 4 x 4
    assert account.used() == 1024 * rows * bits // 8 == driver_has(program)[0]
    program.get("free_array", made)
    assert account.used() == 0


def test_levels_of_a_mipmap_count(program, account):
    made = program.get("mipmap", 1024, 1024, 1)
    assert account.used() == 2 * (1024 * 1024 + 512 * 512 + 256 * 256)
    program.get("free_mipmap", made)
    assert account.used() == 0


def test_host_memory_and_other_devices_do_not_count(program, account):
    program.get("host", 64 * MIB)
    program.get("create", 64 * MIB, 2)  # physical memory of the host
    program.get("context", 1)
    program.get("alloc", 9 * GIB)
    assert account.used() == 0


def test_what_asks_sees_the_slice(program, gpus):
    held = program.get("alloc", 3 * GIB)
    assert program.get("info") == [5 * GIB, LIMIT]
    assert program.get("total", 0) == LIMIT
    assert program.get("total", 1) == 16 * GIB
    assert program.get("nvml", 0) == [LIMIT, 5 * GIB, 3 * GIB] * 2
    assert program.get("nvml", 1)[0] == 16 * GIB
    with gpus.program() as neighbour:  # who is not limited
        neighbour.start()
        assert neighbour.get("nvml", 0)[0] == 16 * GIB
        neighbour.get("alloc", 10 * GIB)
        assert program.get("info")[0] == 16 * GIB - 13 * GIB - 2 * CONTEXT
        # There is no more, whatever the slice.
        assert program.ask("alloc", 4 * GIB) == OUT_OF_MEMORY
    program.get("free", held)
    assert program.get("info") == [LIMIT, LIMIT]


def test_a_pool_is_used_again_and_charged_what_it_has(program, account):
    for _ in range(100):
        held = program.get("async", 3 * GIB)
        program.get("free_async", held)
    assert driver_has(program)[1] <= LIMIT
    program.get("sync")
    assert account.used() == 0
    # What it keeps for the next time is the job's, and nobody else's.
    pool = program.get("default_pool", 0)
    program.get("keep", pool, 1 << 40)
    program.get("free_async", program.get("async", 3 * GIB))
    program.get("sync")
    assert account.used() == 3 * GIB == driver_has(program)[0]
    # It is given back when it is needed for something else of the pool's size.
    program.get("free_async", program.get("async", 6 * GIB))
    assert driver_has(program)[1] <= LIMIT
    program.get("trim", pool, 0)
    assert account.used() == 0


def test_a_pool_of_ones_own(program, account):
    pool = program.get("pool", 0)
    program.get("from_pool", 5 * GIB, pool)
    assert program.ask("from_pool", 5 * GIB, pool) == OUT_OF_MEMORY
    assert account.used() == 5 * GIB
    other = program.get("pool", 1)
    program.get("from_pool", 9 * GIB, other)
    assert account.used() == 5 * GIB


def test_memory_that_waits_for_its_stream_is_the_streams(program, account):
    held = program.get("async", 6 * GIB)
    program.get("launch", 20000)  # 20 ms
    program.get("free_async", held)
    assert account.used() == 6 * GIB
    program.get("async", 6 * GIB)  # the stream is waited for
    assert driver_has(program)[1] <= LIMIT


@pytest.mark.parametrize("order", ["unmap release", "release unmap", "retain release unmap release2"])
def test_mapped_memory_counts_until_its_last_use(program, account, order):
    made = program.get("create", GIB, 1)
    at = program.get("address", 4 * GIB)
    program.get("map", at, GIB, made)
    handle = made
    for step in order.split():
        assert account.used() == GIB == driver_has(program)[0]
        if step == "retain":
            handle = program.get("retain", at + 12345)
        elif step == "unmap":
            program.get("unmap", at, 4 * GIB)
        else:
            program.get("release", handle if step == "release2" else made)
    assert account.used() == 0 == driver_has(program)[0]


def test_a_handle_that_is_given_again_is_other_memory(program, account):
    first = program.get("create", GIB, 1)
    at = program.get("address", GIB)
    program.get("map", at, GIB, first)
    program.get("release", first)
    second = program.get("create", 2 * GIB, 1)
    assert second == first
    program.get("unmap", at, GIB)
    assert account.used() == 2 * GIB == driver_has(program)[0]
    program.get("release", second)
    assert account.used() == 0


def test_a_context_takes_its_memory_with_it(program, account):
    context = program.get("context", 0)
    program.get("alloc", 2 * GIB)
    program.get("primary", 0)
    program.get("alloc", 3 * GIB)
    assert account.used() == 5 * GIB
    program.get("destroy", context)
    assert account.used() == 3 * GIB
    program.get("reset", 0)
    assert account.used() == 0
    program.get("alloc", GIB)
    program.get("unretain", 0)
    assert account.used() == 0 == driver_has(program)[0]


def test_two_processes_have_one_limit(gpus, account):
    with gpus.program(account) as one, gpus.program(account, "linked") as two:
        one.start()
        two.start()
        results = [one.ask("alloc", 5 * GIB)[0], two.ask("alloc", 5 * GIB)[0]]
        assert results == [0, 2]
        assert two.get("info")[1] == LIMIT
        assert account.amounts() == (5 * GIB, 5 * GIB, 1)
        assert set(account.processes()) == {one.process.pid, two.process.pid}


def test_what_a_killed_process_had_can_be_had_again(gpus, account):
    with gpus.program(account) as one, gpus.program(account) as two:
        one.start()
        two.start()
        one.get("alloc", 6 * GIB)
        assert two.ask("alloc", 6 * GIB) == OUT_OF_MEMORY
        one.process.kill()
        one.process.wait()
        assert two.get("info") == [LIMIT, LIMIT]
        two.get("alloc", 6 * GIB)
        assert account.processes() == [two.process.pid]


def test_what_a_process_had_as_another_program_can_be_had_again(gpus, account):
    """The driver takes back what a process had that executes another program; this one does not, and has enough."""
    with gpus.program(account) as program:
        for how in ("dlsym", "proc", None):
            program.start()
            program.get("alloc", 5 * GIB)
            assert account.used() == 5 * GIB and account.processes() == [program.process.pid]
            if how:
                assert program.text("execute", how) == "0\n"


def test_a_question_that_the_driver_did_not_answer_is_asked_again(gpus, account):
    """Before the driver is initialized it does not say which GPU a number means."""
    with gpus.program(account) as program:
        assert program.ask("create", 2 * MIB, 1) == [3]
        program.start()
        assert program.ask("create", 9 * GIB, 1) == OUT_OF_MEMORY
        assert program.ask("alloc", 9 * GIB) == OUT_OF_MEMORY
        assert program.get("info")[1] == LIMIT


def test_killed_anywhere_the_account_stays_right(gpus, account):
    random_waits = random.Random(4711)
    trials = 300 if os.environ.get("GFLOW_TEST_FULL") else 20
    with gpus.program(account) as witness:
        witness.start()
        for _ in range(trials):
            program = gpus.program(account)
            program.start()
            program.process.stdin.write("churn\n")
            program.process.stdin.flush()
            while account.used() < random_waits.randrange(1, 200 * MIB):
                pass
            os.kill(program.process.pid, signal.SIGKILL)
            program.process.communicate()
            whole = witness.get("alloc", LIMIT)
            assert account.used() == LIMIT
            assert driver_has(witness) == (LIMIT, LIMIT)
            witness.get("free", whole)


def test_a_forked_child_has_a_place_of_its_own(gpus, account):
    with gpus.program(account) as program:
        assert program.text("fork") == "0 child\n"  # before it uses the driver, as it cannot be used after
        program.start()
        program.get("alloc", 6 * GIB)
        child = account.processes()
        assert len(child) == 1 and child != [program.process.pid]
        program.process.stdin.close()
        assert program.process.stdout.readline() == "0 0\n"  # its parent's answer, once it has ended
    with gpus.program(account) as program:
        program.start()
        held = program.get("alloc", 6 * GIB)
        assert program.text("fork") == "0 child\n"
        assert program.get("init") == []
        assert account.used() == 6 * GIB
        assert program.ask("alloc", 6 * GIB) == OUT_OF_MEMORY
        assert program.ask("free", held) == [0]  # of the fake driver, which does not mind; the parent's charge stays
        assert account.used() == 6 * GIB


def test_a_child_that_cannot_give_the_lock_back_does_not_take_it(gpus, account):
    """Of a clone(2) past the C library: the kernel does not tell others of its death."""
    with gpus.program(account) as program:
        assert program.text("clone") == "0 child\n"
        program.start()
        program.get("alloc", 9 * GIB)
        assert program.get("info")[1] == 16 * GIB
        assert account.processes() == []
        said = program.end()
    assert said.count("\n") == 1
    assert said.startswith("gflow: this process is not held to its part of the GPU: ") and "clone" in said


def test_an_account_that_is_cut_short_ends_no_program(gpus, account):
    with gpus.program(account) as program, gpus.program(account) as other:
        program.start()
        other.start()
        held = program.get("alloc", GIB)
        waits = program.get("async", GIB)
        os.truncate(account.file, 4096)
        program.get("alloc", 9 * GIB)
        program.get("free", held)
        program.get("free_async", waits)
        program.get("sync")
        assert program.get("info")[1] == 16 * GIB
        assert program.get("nvml", 0)[0] == 16 * GIB
        other.get("alloc", GIB)
        for said in (program.end(), other.end()):
            assert said.count("\n") == 1 and said.endswith("account: it was cut short\n")


def test_who_waits_for_memory_of_a_pool_keeps_nobody(program, account):
    """Its stream has a kernel that waits for what another thread does."""
    program.get("alloc", LIMIT - GIB)
    assert program.get("wait_for_memory", 2 * GIB, MIB) == [*OUT_OF_MEMORY, 0]
    assert account.used() == LIMIT - GIB + 32 * MIB


def test_a_library_before_it_finds_the_next_one(gpus, account):
    """A wrapper that is loaded after the interposer asks for the next function of its own, and must not get itself."""
    wrapper = FAKE / "libnext_dlsym.so"
    environment = gpus.environment | {
        "LD_PRELOAD": f"{INTERPOSER}:{wrapper}",
        "GFLOW_SHARE_DIR": str(account.folder),
    }
    script = "import os; print(os.getppid())"
    done = subprocess.run(
        ["/usr/bin/python3", "-c", script], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout == f"{os.getpid()}\n"


def test_a_library_before_it_finds_no_driver_where_there_is_none(gpus, account):
    """One that looks for the next function of a name: a hook stands for what a driver has, or for nothing."""
    wrapper = FAKE / "libnext_dlsym.so"
    environment = gpus.environment | {
        "LD_PRELOAD": f"{wrapper}:{INTERPOSER}",
        "GFLOW_SHARE_DIR": str(account.folder),
    }
    script = """
import ctypes
finds = ctypes.CDLL(None).finds_next
print(finds(b"cuMemAlloc_v2"), finds(b"nvmlDeviceGetMemoryInfo"), finds(b"getppid"))
ctypes.CDLL("libcuda.so.1", ctypes.RTLD_GLOBAL)
print(finds(b"cuMemAlloc_v2"), finds(b"cuMemAllocAsync"), finds(b"nvmlDeviceGetMemoryInfo"))
"""
    for driver, has_pools in ((FAKE, 1), (OLD_FAKE, 0)):
        environment["LD_LIBRARY_PATH"] = f"{driver}:{FAKE}"
        done = subprocess.run(
            ["/usr/bin/python3", "-c", script], env=environment, capture_output=True, text=True, check=True
        )
        assert done.stdout == f"0 0 1\n1 {has_pools} 0\n"


def test_a_plugin_finds_its_own_and_what_it_needs(gpus, account):
    """A library that a program loads for itself alone looks in all libraries: for it those are one more than for others."""
    with gpus.program(account, "dlsym") as program:
        assert program.ask("plugin", FAKE / "libplugin.so") == [0, 1, 1, 0]  # its own, what it needs, what is nowhere


def test_it_loads_with_the_c_library_of_a_container(gpus):
    """Which may be older than that of the machine: one missing version and no program there starts."""
    table = subprocess.run(["objdump", "-p", INTERPOSER], capture_output=True, text=True, check=True).stdout
    versions = {tuple(map(int, found.split("."))) for found in re.findall(r"GLIBC_([0-9.]+)", table)}
    assert versions and max(versions) <= (2, 17)
    needed = set(re.findall(r"NEEDED +(\S+)", table))
    assert needed <= {"libc.so.6", "libdl.so.2", "libpthread.so.0"} | {name for name in needed if name.startswith("ld-linux")}


@pytest.mark.parametrize(
    "spoil, words",
    [
        (lambda file: file.unlink(), "No such file"),
        (lambda file: file.write_bytes(b"x" * 100), "another size"),
        (lambda file: file.write_bytes(b"\0" * file.stat().st_size), "another version"),
    ],
)
def test_without_a_usable_account_programs_run_and_say_so(gpus, account, spoil, words):
    spoil(account.file)
    with gpus.program(account) as program:
        program.start()
        program.get("alloc", 9 * GIB)
        said = program.end()
    assert said.count("\n") == 1
    assert said.startswith("gflow: this process is not held to its part of the GPU: ") and words in said


def test_an_account_of_the_version_before_limits(gpus, tmp_path):
    """Of an attempt that was started before gflow was upgraded."""
    older = Account(tmp_path / "older", {UUIDS[0]: LIMIT}, version=3)
    with gpus.program(older) as program:
        program.start()
        assert program.ask("alloc", 9 * GIB) == OUT_OF_MEMORY
        program.get("alloc", LIMIT)
        assert older.used() == LIMIT and program.end() == ""


def test_a_limit_below_what_is_used_refuses_and_breaks_nothing(gpus, tmp_path):
    account = Account(tmp_path / "small", {UUIDS[0]: 1000})
    with gpus.program(account) as program:
        program.start()
        assert program.get("info") == [1000, 1000]
        assert program.ask("alloc", 1000) == OUT_OF_MEMORY  # memory comes in units of 512 bytes
        program.get("alloc", 512)
        assert program.get("info") == [488, 1000]
        assert program.get("nvml", 0) == [1000, 488, 512] * 2


def test_a_pool_that_is_gone_is_not_charged(program, account):
    pool = program.get("pool", 0)
    program.get("free_async", program.get("from_pool", GIB, pool))
    program.get("destroy_pool", pool)
    assert account.used() == 0


def test_many_processes_and_threads_have_no_more_than_the_limit(gpus, account):
    """Of every kind of memory, at random; the driver keeps its own count of what it gave."""
    steps = 5000 if os.environ.get("GFLOW_TEST_FULL") else 300
    programs = [gpus.program(account) for _ in range(4)]
    contexts = len(programs) * CONTEXT
    for program in programs:
        program.start()
    for seed, program in enumerate(programs):
        program.process.stdin.write(f"stress {seed + 1} {steps}\n")
        program.process.stdin.flush()
    assert [program.process.stdout.readline() for program in programs] == ["0\n"] * len(programs)
    used, peak = programs[0].get("used", 0)
    assert account.used() == used - contexts > 0
    assert LIMIT * 0.7 < peak - contexts <= LIMIT  # it was full, and not more than that
    assert account.amounts()[2] > 0
    for program in programs[1:]:
        program.end()
    assert programs[0].get("info")[0] == LIMIT - account.used()
    used, _ = programs[0].get("used", 0)
    assert account.used() == used - CONTEXT
    programs[0].end()


def test_hooks_within_a_program(gpus, account):
    """Where sanitizers see them, in a build that has some."""
    with gpus.program(account, "within") as program:
        program.start()
        program.get("stress", 1, 300)
        program.get("primary", 0)
        program.get("alloc", MIB)
        program.get("reset", 0)
        used, peak = driver_has(program)
        assert account.used() == used > 0 and peak <= LIMIT
        assert program.end() == ""
        assert program.process.returncode == 0


def test_look_ups_of_many_threads_end(gpus, account):
    with gpus.program(account, "default") as program:
        assert program.get("look_up", 10000 if os.environ.get("GFLOW_TEST_FULL") else 1000) == 0
