# SPDX-License-Identifier: Apache-2.0
"""A job whose GPU memory gflow-park takes: a supervisor, and programs below it on the fake driver."""

import os
import signal
import subprocess
from pathlib import Path

from fake_gpu import CONTEXT, FAKE, GIB, INTERPOSER, MIB, Program
from machine import BIN, PATIENCE

PARK = BIN / "gflow-park"
RUNNING, LOCKED, PARKED, FAILED = range(4)
DONE, REFUSED, USAGE, UNCLEAR, BROKEN, NO_ROOM = range(6)
EACH = GIB + CONTEXT


class Below(Program):
    """One of several programs below a supervisor, which talks through pipes of its own."""

    def __init__(self, process, asks, answers):
        self.process = process
        self.asks, self.answers = os.fdopen(asks, "w"), os.fdopen(answers)

    def text(self, command, *numbers):
        self.asks.write(" ".join([command, *map(str, numbers)]) + "\n")
        self.asks.flush()
        answer = self.answers.readline()
        assert answer, "the program ended"
        return answer

    def end(self):
        self.asks.close()


class Group:
    """A process and all below it, as Gpus ends them: who is parked does not see that its input has ended."""

    def __init__(self, first):
        self.process, self.first = self, first

    def kill(self):
        os.killpg(self.first.pid, signal.SIGKILL)

    def wait(self):
        self.first.wait()


class Job:
    """A supervisor and programs below it that use the GPU, each of which filled some of its memory."""

    def __init__(self, gpus, count, account=None, unknown=None, how="proc", bare=None, prepare=None, late=None):
        """UNKNOWN: the number of one whose driver does not answer to others. BARE: of one without the library of the account.
        PREPARE: what each program does first. LATE: the number of one that does not use the GPU before it is told to."""
        inner, outer = [], []
        for _ in range(count):
            to_program, from_program = os.pipe(), os.pipe()
            inner.append((to_program[0], from_program[1]))
            outer.append((to_program[1], from_program[0]))
        script = "wait"
        for number, (asks, answers) in reversed(list(enumerate(inner))):
            variable = "GFLOW_VIRTUAL_CLOCK=none " if number == unknown else "LD_PRELOAD= " if number == bare else ""
            client = "cuda_client_linked" if how == "linked" else "cuda_client"
            script = f"{variable}{FAKE}/{client} {how} <&{asks} >&{answers} & {script}"
        descriptors = [number for pair in inner for number in pair]
        self.environment = gpus.environment
        of_account = {"LD_PRELOAD": str(INTERPOSER), "GFLOW_SHARE_DIR": str(account.folder)} if account else {}
        of_job = self.environment | of_account
        self.process = subprocess.Popen(["bash", "-c", script], env=of_job, pass_fds=descriptors, start_new_session=True)
        gpus.programs.append(Group(self.process))
        for number in descriptors:
            os.close(number)
        self.programs = [Below(self.process, *pair) for pair in outer]
        self.blocks, self.sums = [], []
        for seed, program in enumerate(self.programs, start=1):
            if prepare is not None:
                prepare(program)
            if seed - 1 == late:
                continue
            program.start()
            self.blocks.append(program.get("alloc", GIB))
            self.sums.append(program.get("fill", self.blocks[-1], MIB, seed))
        self.watch = gpus.program()
        self.watch.get("init")

    def begin(self, verb, *options, seconds=PATIENCE, **more):
        start_time = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")")[1].split()[19]
        arguments = [PARK, verb, str(self.process.pid), start_time, str(seconds), *map(str, options)]
        return subprocess.Popen(arguments, env=self.environment | more, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    @staticmethod
    def answer(begun):
        """(exit status, what it said)"""
        with begun:
            out, err = begun.communicate(timeout=2 * PATIENCE)
        assert "Sanitizer" not in err
        return begun.returncode, out

    def ask(self, *words, **more):
        return self.answer(self.begin(*words, **more))

    def pids(self):
        found = subprocess.run(["pgrep", "-P", str(self.process.pid)], capture_output=True, text=True, check=True)
        return [int(pid) for pid in found.stdout.split()]

    def standings(self):
        """Of those that the driver knows."""
        states = [self.watch.ask("state_of", pid) for pid in self.pids()]
        return {standing for result, *given in states for standing in given if result == 0}

    def used(self):
        return self.watch.get("used", 0)[0]

    def is_as_it_was(self):
        """Its programs run, and their memory is where it was and holds what it held."""
        assert self.standings() == {RUNNING} and self.used() == len(self.programs) * EACH
        return [program.get("sum", block, MIB) for program, block in zip(self.programs, self.blocks, strict=True)] == self.sums
