# SPDX-License-Identifier: Apache-2.0
"""gflow.train.checkpoint: saved when told, resumed from the newest that is whole."""

import ast
import os
import pickle
import signal
import subprocess

import gflow
import pytest
from frameworks import python_with
from gflow.train import checkpoint
from gflow.train._files import Files
from machine import Gate
from package import SOURCE

ENVIRONMENT = {"PYTHONPATH": str(SOURCE), "PYTHONDONTWRITEBYTECODE": "1"}


class Model:
    """What has a state."""

    def __init__(self):
        self.weights = [0]

    def state_dict(self):
        return {"weights": self.weights}

    def load_state_dict(self, state):
        self.weights = state["weights"]


@pytest.fixture
def saves(tmp_path):
    """Made anew on the same files, as by a program that starts again."""
    made = []

    def make(model=None, **options):
        made.append(checkpoint.Checkpoint(tmp_path, model=model or Model(), **options))
        return made[-1]

    yield make
    for one in reversed(made):
        one.close()


def names(directory):
    return sorted(path.name[:15] for path in directory.iterdir())


def test_it_goes_on_behind_the_newest(saves, tmp_path):
    first = Model()
    for step in saves(first).steps(5, every=2):
        first.weights = [step]
    assert names(tmp_path) == ["step-0000000002", "step-0000000004", "step-0000000005"]
    second = Model()
    resumed = saves(second)
    assert resumed.step == 5 and second.weights == [4] and resumed.resumed_from.name.startswith("step-0000000005-")
    assert list(resumed.steps(5)) == [] and list(saves().steps(7)) == [5, 6]
    assert names(tmp_path) == ["step-0000000004", "step-0000000005", "step-0000000007"]  # three are kept
    saves(keep=1).save()
    assert names(tmp_path) == ["step-0000000007"]


def test_what_is_broken_is_ignored(saves, tmp_path, caplog):
    for _ in saves().steps(3, every=1):
        pass
    newest, older, _ = sorted(tmp_path.iterdir(), reverse=True)
    newest.write_bytes(newest.read_bytes()[:-1])
    older.write_bytes(older.read_bytes()[:-1] + b"?")
    (tmp_path / "step-0000000009-00000000.pt").write_bytes(b"x")
    (tmp_path / "step-0000000008.pt").write_text("of somebody else")
    (tmp_path / ".part-77.pt").write_text("begun by one that was killed")
    assert saves().step == 1
    assert sorted(os.path.basename(one.args[0]) for one in caplog.records) == [
        older.name, newest.name, "step-0000000009-00000000.pt"]
    assert not (tmp_path / ".part-77.pt").exists() and (tmp_path / "step-0000000008.pt").exists()


def test_one_that_cannot_be_written_leaves_those_that_are_there(saves, tmp_path):
    class Unwritable(Model):
        def state_dict(self):
            return {"weights": lambda: 0}

    saves().save()
    before = sorted(tmp_path.iterdir())
    with pytest.raises((AttributeError, TypeError, pickle.PicklingError)):
        saves(Unwritable(), keep=1).save()
    assert sorted(tmp_path.iterdir()) == before


class Once(dict):
    """What can be written, and not read."""

    def __reduce__(self):
        return int, ("no number",)


def test_one_that_could_not_be_read_again_is_told_when_it_is_saved(tmp_path):
    class Unreadable(Model):
        def state_dict(self):
            return Once()

    one = checkpoint.Checkpoint(tmp_path, model=Model(), sampler=Unreadable())
    with pytest.raises(TypeError, match="the state of 'sampler' can be saved and not read again"):
        one.save()
    one.close()
    assert list(tmp_path.iterdir()) == []


def test_the_state_of_another_program_is_no_broken_file(saves, tmp_path):
    saves().save()
    with pytest.raises(ValueError, match="do not have the same states: optimizer"):
        checkpoint.Checkpoint(tmp_path, model=Model(), optimizer=Model())
    with pytest.raises(ValueError, match="needs what it is of"):
        checkpoint.Checkpoint(tmp_path)
    with pytest.raises(ValueError, match="keep=0"):
        Files(tmp_path, "pt", 0)


def test_signals_are_given_back(tmp_path):
    before = signal.getsignal(signal.SIGUSR1), signal.getsignal(signal.SIGTERM)
    one = checkpoint.Checkpoint(tmp_path, model=Model())
    assert signal.getsignal(signal.SIGUSR1) != before[0]
    list(one.steps(1))
    assert (signal.getsignal(signal.SIGUSR1), signal.getsignal(signal.SIGTERM)) == before


def left_by_break(steps):
    for _ in steps:
        break


def left_by_an_error(steps):
    with pytest.raises(ZeroDivisionError):
        for _ in steps:
            1 / 0


@pytest.mark.parametrize("leave", [left_by_break, left_by_an_error])
def test_signals_are_given_back_by_a_loop_that_is_left_early(tmp_path, leave):
    """As by early stopping: what follows ends by SIGTERM. Another loop is told again."""
    before = signal.getsignal(signal.SIGTERM)
    one = checkpoint.Checkpoint(tmp_path, model=Model())
    leave(one.steps(5))
    assert signal.getsignal(signal.SIGTERM) == before
    with pytest.raises(SystemExit):
        for _ in one.steps(5):
            signal.raise_signal(signal.SIGTERM)
    assert one.step == 1 and names(tmp_path) == ["step-0000000001"] and signal.getsignal(signal.SIGTERM) == before


def test_signals_are_given_back_by_one_that_could_not_resume(saves, tmp_path):
    saves().save()
    saves().close()
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(ValueError, match="do not have the same states"):
        checkpoint.Checkpoint(tmp_path, other=Model())
    assert signal.getsignal(signal.SIGTERM) == before


def test_what_makes_no_sense_is_refused_before_a_step(saves, tmp_path):
    for every in (0, -1):
        with pytest.raises(gflow.OptionError, match=f"every={every}: "):
            saves().steps(3, every=every)
    with pytest.raises(gflow.OptionError, match="model=3 has no state_dict"):
        checkpoint.Checkpoint(tmp_path, model=3)


HOSTILE = """
import os, pickle, sys, zlib
import torch
from gflow.train import checkpoint

class Runs:
    def __reduce__(self):
        return os.mkdir, ("run",)

def resumed(directory, states):
    data = pickle.dumps({"states": states, "random": [{"python": (3, (0,) * 624 + (624,), None)}]})
    os.mkdir(directory)
    with open(f"{directory}/step-0000000009-{zlib.crc32(data):08x}.pt", "wb") as file:
        file.write(data)
    class Plain:
        state_dict = staticmethod(lambda: 0)
        load_state_dict = staticmethod(print)
    return checkpoint.Checkpoint(directory, model=Plain())

print(resumed("plain", {"model": {"weights": [1.5]}}).step)
try:
    resumed("hostile", {"model": Runs()})
except pickle.UnpicklingError as error:
    print(error)
print(os.path.exists("run"))
"""


def test_with_pytorch_nothing_of_a_file_is_run(tmp_path):
    """Also where it is none of PyTorch's."""
    done = subprocess.run([python_with("torch"), "-c", HOSTILE], capture_output=True, text=True, check=False, cwd=tmp_path,
                          env=os.environ | ENVIRONMENT)
    assert done.returncode == 0, done.stderr
    plain, step, error, ran = done.stdout.splitlines()
    assert (plain, step, ran) == ("{'weights': [1.5]}", "9", "False") and "was written without PyTorch and has a posix.mkdir" in error


# Each step says that it was begun, and waits until it may end where the test wants that.
TRAINING = """
import os, sys
from gflow.train import checkpoint
class Sum:
    value = 0
    def state_dict(self): return {"value": self.value}
    def load_state_dict(self, state): self.value = state["value"]
sums = Sum()
saves = checkpoint.Checkpoint("saved", sums=sums)
print("from", saves.step, flush=True)
for step in saves.steps(5):
    print("step", step, flush=True)
    sums.value += step
    if step == 2 and saves.resumed_from is None: os.system(sys.argv[1])
print("sum", sums.value)
"""


def submitted(machine, gate, *options):
    (machine.work / "train.py").write_text(TRAINING)
    job = machine.submit(*options, "python3", "train.py", gate.command, env=ENVIRONMENT)
    gate.reached()
    return job


def test_a_job_that_is_preempted_goes_on_where_it_was(machine):
    """gflow tells it, it saves behind the step in work and ends; it is queued again and does the rest."""
    gate = Gate(machine)
    job = submitted(machine, gate, "--gpus", 2, "--preemptible", "--priority", 1)
    urgent = machine.submit("--gpus", 2, "--priority", 100, "true")
    assert machine.wait(urgent, job)[1]["status"] == "Finished"
    assert machine.log(job).splitlines() == [
        "from 0", "step 0", "step 1", "step 2", "from 3", "step 3", "step 4", "sum 10"]


def test_told_by_a_person_it_saves_and_goes_on(machine):
    gate = Gate(machine)
    job = submitted(machine, gate)
    machine.ok("gcancel", "--signal", "USR1", job)
    # The shell its step waits for ends by the signal, and the step goes on.
    assert machine.wait(job)[0]["status"] == "Finished"
    assert names(machine.work / "saved") == ["step-0000000003", "step-0000000005"]
    assert machine.log(job).splitlines()[-1] == "sum 10"


def test_at_its_time_limit_it_saves_and_ends(machine):
    gate = Gate(machine)
    job = submitted(machine, gate)
    machine.ok("gjob", "update", job, "--time", "1s")  # now: it may take longer to get there
    assert machine.wait(job)[0]["status"] == "Timeout"
    assert names(machine.work / "saved") == ["step-0000000003"]
    again = machine.submit("python3", "train.py", "true", env=ENVIRONMENT)
    machine.wait(again)
    assert machine.log(again).splitlines() == ["from 3", "step 3", "step 4", "sum 10"]


KERAS = """
import os, signal, sys
import numpy
import keras
from gflow.train import checkpoint

x, y = numpy.ones((8, 4), "float32"), numpy.ones((8, 1), "float32")

def trained(directory, ends_in=None):
    keras.utils.set_random_seed(1)
    model = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(3), keras.layers.Dense(1)])
    model.compile("adam", "mse")
    saves = checkpoint.keras_callback(directory, model)
    begun = []
    def begin(epoch, logs):
        begun.append(epoch)
        if epoch == ends_in: signal.raise_signal(signal.SIGTERM)
    told = keras.callbacks.LambdaCallback(on_epoch_begin=begin)
    try:
        model.fit(x, y, epochs=4, batch_size=8, verbose=0, initial_epoch=saves.epoch, callbacks=[saves, told])
    except SystemExit as ended:
        return begun, ended.code
    return begun, [round(float(numpy.sum(one)), 4) for one in [*model.get_weights(), model.optimizer.iterations]]

def handlers():
    return [signal.getsignal(one) for one in (signal.SIGUSR1, signal.SIGTERM)]

before = handlers()
print(trained("whole"), trained("parts", ends_in=2), trained("parts"), sep="\\n")
assert handlers() == before

def no(epoch, logs):
    raise ValueError("not this epoch")

model = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(1)])
model.compile("adam", "mse")
several = [checkpoint.keras_callback(one, model) for one in ("first", "second")]
try:
    model.fit(x, y, verbose=0, callbacks=[*several, keras.callbacks.LambdaCallback(on_epoch_begin=no)])
except ValueError as error:
    print(error)
assert handlers() == before and "fit" not in vars(model)
try:
    checkpoint.keras_callback("whole", keras.Sequential([keras.layers.Dense(1)]))
except ValueError as error:
    print(error)
"""


def test_keras(tmp_path):
    """One that is told to end in an epoch goes on with that, with the weights and the optimizer of the batch it was told in."""
    done = subprocess.run([python_with("keras"), "-c", KERAS], capture_output=True, text=True, check=False, cwd=tmp_path,
                          env=os.environ | ENVIRONMENT | {"KERAS_BACKEND": "jax", "JAX_PLATFORMS": "cpu"})
    assert done.returncode == 0, done.stderr
    *runs, raised, error = done.stdout.splitlines()
    (epochs, whole), ended, (rest, parts) = map(ast.literal_eval, runs)
    assert epochs == [0, 1, 2, 3] and ended == ([0, 1, 2], 143) and rest == [2, 3]
    assert whole[-1] == 4 and parts[-1] == 5 and whole[:-1] != parts[:-1]  # a batch is made again, from where it was
    assert names(tmp_path / "whole") == ["step-0000000002", "step-0000000003", "step-0000000004"]
    assert raised == "not this epoch"
    assert error == "compile the model before its checkpoint is made: its optimizer is saved, too"
