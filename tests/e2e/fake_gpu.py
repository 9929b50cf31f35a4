# SPDX-License-Identifier: Apache-2.0
"""The fake driver of tests/fake_cuda: a machine file, programs that use it, accounts of the interposer."""

import contextlib
import ctypes
import os
import signal
import struct
import subprocess
import threading
import time
from pathlib import Path

from machine import BIN, PATIENCE

FAKE = BIN.parent / "fake_cuda"
OLD_FAKE = BIN.parent / "fake_cuda_old"
INTERPOSER = BIN / "libgflow-share.so"
CLOCK = FAKE / "libvirtual_clock.so"
UUIDS = ["GPU-11111111-2222-3333-4444-555555555555", "GPU-66666666-2222-3333-4444-555555555555"]
MIB = 1 << 20
GIB = 1 << 30
CONTEXT = 300 * MIB
OUT_OF_MEMORY = [2]
GANG = 256 + 256 * 96  # bytes of the file by which processes of a job with several GPUs tell each other of turns


def uuids(count):
    """Of so many GPUs, of which the first are those of UUIDS."""
    return UUIDS[:count] + [f"GPU-{10_000_000 * (at + 5) + 7}-2222-3333-4444-555555555555" for at in range(2, count)]


class Gpus:
    """GPUs of 16 GiB, two if it is not said."""

    def __init__(self, folder, driver=FAKE, count=2):
        self.folder = folder
        self.programs = []
        self.file = folder / "gpus"
        devices = "".join(f"device {uuid} 16384 NVIDIA H100\n" for uuid in uuids(count))
        self.file.write_text(f"driver 12090\ncontext {CONTEXT // MIB}\n{devices}")
        self.environment = {
            **{name: value for name, value in os.environ.items() if name in ("PATH", "LANG")},
            "GFLOW_FAKE_CUDA": str(self.file),
            "LD_LIBRARY_PATH": f"{driver}:{FAKE}",
        }

    def program(self, account=None, how="proc", arguments=(), clock=None, **more):
        environment = self.environment | more
        libraries = []
        if clock is not None:
            environment["GFLOW_VIRTUAL_CLOCK"] = str(clock)
            libraries.append(str(CLOCK))
        if account is not None:
            environment["GFLOW_SHARE_DIR"] = str(account.folder)
            if how != "within":
                libraries.append(str(INTERPOSER))
        if libraries:
            environment["LD_PRELOAD"] = ":".join(libraries)
        client = f"cuda_client_{how}" if how in ("linked", "within") else "cuda_client"
        self.programs.append(Program([FAKE / client, how, *arguments], environment))
        return self.programs[-1]

    def end(self):
        """Whatever programs still do."""
        for program in self.programs:
            program.process.kill()
            program.process.wait()


def shared_lock():
    """A mutex of the C library that processes share and that tells of a holder's death."""
    libc = ctypes.CDLL(None)
    kind, mutex = ctypes.create_string_buffer(64), ctypes.create_string_buffer(40)
    libc.pthread_mutexattr_init(kind)
    libc.pthread_mutexattr_setpshared(kind, 1)
    libc.pthread_mutexattr_setrobust(kind, 1)
    libc.pthread_mutex_init(mutex, kind)
    return mutex.raw


def virtual_clock(file, parties):
    """A clock that goes when all of so many programs wait, so that what they do takes no time (virtual_clock.cpp)."""
    file.write_bytes(struct.pack("<40sII", shared_lock(), parties, parties).ljust(4096, b"\0"))
    return file


class Account:
    """The account of an attempt: GPU -> bytes. Its layout is in docs/format/account.md."""

    DEVICES = 64
    DEVICE = 128
    PROCESSES = DEVICES + 16 * DEVICE
    SLOT = 144

    def __init__(self, folder, limits, share=1, turn=None, share_limit=None, version=4, turns=None):
        """Without LIMITS that of a job with whole GPUs. TURN: the file that accounts of one GPU have in common, TURNS:
        those of each GPU, where there are several. SHARE is also the most, if that is not given."""
        self.folder = folder
        self.file = folder / "account"
        content = bytearray(self.PROCESSES + 256 * self.SLOT)
        struct.pack_into("<8sIIII", content, 0, b"account\n", version, len(content), len(limits), 0)
        content[24:64] = shared_lock()
        for index, (uuid, limit) in enumerate(limits.items()):
            struct.pack_into("<48sQ", content, self.DEVICES + self.DEVICE * index, uuid.encode(), limit)
            shares = [round(part * 10_000) for part in (share, share if share_limit is None else share_limit)]
            struct.pack_into("<QQ", content, self.DEVICES + self.DEVICE * index + 80, *shares)
        folder.mkdir(exist_ok=True)
        self.file.write_bytes(content)
        if turn is not None:
            turn.touch()
            os.link(turn, folder / "turn")
        for index, each in enumerate(turns or []):
            each.touch()
            os.link(each, folder / f"turn.{index}")
        if turns is not None:
            (folder / "gang").write_bytes(struct.pack("<8sQ", b"gang\n1\n\0", GANG).ljust(GANG, b"\0"))

    def amounts(self, index=0):
        """(used, peak, refused)"""
        return struct.unpack_from("<QQQ", self.file.read_bytes(), self.DEVICES + self.DEVICE * index + 56)

    def busy(self, index=0):
        """Nanoseconds for which a GPU was used."""
        return struct.unpack_from("<Q", self.file.read_bytes(), self.DEVICES + self.DEVICE * index + 104)[0]

    def set_progress(self, nanoseconds):
        """Of the first GPU, as if it had been used so much of its share."""
        with self.file.open("r+b") as file:
            file.seek(self.DEVICES + 112)
            file.write(struct.pack("<Q", nanoseconds))

    def lent(self):
        """0: the GPU is the job's own; 1: lent; 2: and wanted back."""
        return struct.unpack_from("<I", self.file.read_bytes(), 20)[0]

    def set_lent(self, lent):
        with self.file.open("r+b") as file:
            file.seek(20)
            file.write(struct.pack("<I", lent))

    @contextlib.contextmanager
    def lent_until_wanted(self):
        """The GPU is lent, and the job's own again as soon as a program says that it wants it, which one has to."""
        self.set_lent(1)
        latest = time.monotonic() + PATIENCE

        def give_back():
            while self.lent() != 2 and time.monotonic() < latest:
                pass
            self.was_wanted = self.lent() == 2
            self.set_lent(0)

        giver = threading.Thread(target=give_back)
        giver.start()
        yield
        giver.join()
        assert self.was_wanted

    def used(self, index=0):
        return self.amounts(index)[0]

    def processes(self):
        content = self.file.read_bytes()
        pids = [struct.unpack_from("<I", content, self.PROCESSES + self.SLOT * slot)[0] for slot in range(256)]
        return [pid for pid in pids if pid]


def stop(pid):
    """Until no thread of it runs: they stop one by one."""
    os.kill(pid, signal.SIGSTOP)
    threads = Path(f"/proc/{pid}/task")
    while any((thread / "stat").read_text().rsplit(")", 1)[1].split()[0] != "T" for thread in threads.iterdir()):
        pass


class Program:
    """A program that uses the driver, a command at a time: the numbers of its answer, the driver's result first."""

    def __init__(self, command, environment):
        self.process = subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()

    def text(self, command, *numbers):
        self.process.stdin.write(" ".join([command, *map(str, numbers)]) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        assert answer, f"the program ended: {self.process.stderr.read()}"
        return answer

    def ask(self, command, *numbers):
        return [int(word) for word in self.text(command, *numbers).split()]

    def get(self, command, *numbers):
        """What the driver gave."""
        result, *given = self.ask(command, *numbers)
        assert result == 0, (command, numbers, result)
        return given[0] if len(given) == 1 else given

    def start(self, device=0):
        self.get("init")
        return self.get("context", device)

    def end(self):
        """What it said on stderr."""
        if self.process.stdin.closed:
            return ""
        _, said = self.process.communicate(timeout=PATIENCE)
        return said
