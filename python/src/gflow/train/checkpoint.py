# SPDX-License-Identifier: Apache-2.0
"""Save when told, resume from the newest::

    saves = checkpoint.Checkpoint("checkpoints", model=model, optimizer=optimizer)
    for step in saves.steps(10_000, every=1_000):
        ...

gflow sends SIGTERM before a job is preempted and at its time limit, and SIGKILL after its grace (`gbatch --grace`): the step in
work is finished, saved, and the program ends. SIGUSR1 (`gcancel --signal USR1`) saves and goes on. The job that starts again
goes on with the step after the newest checkpoint.
"""

from __future__ import annotations

import importlib
import io
import os
import pickle
import random
import signal
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import Any, BinaryIO, NoReturn, Optional, Protocol, Union

from gflow.errors import OptionError
from gflow.train._files import Files

__all__ = ["Checkpoint", "keras_callback"]

_ZIP = b"PK\x03\x04"  # a file of torch.save() begins so, a pickle never does


class Stateful(Protocol):
    """A module, an optimizer, a scheduler, a scaler of PyTorch, or anything of that kind."""

    def state_dict(self) -> Any: ...

    def load_state_dict(self, state: Any, /) -> object: ...


class Told:
    """Which signals came. Handlers are those that were there, once it is closed."""

    def __init__(self, saves_on: Sequence[int], ends_on: Sequence[int]) -> None:
        self._ends_on = set(ends_on)
        self.to_save = False
        self.ended_by = 0
        self._numbers = {*saves_on, *ends_on}
        self._before: dict[int, Any] = {}
        self.listen()

    def listen(self) -> None:
        """Again, where it was closed."""
        if not self._before:
            self._before = {number: signal.signal(number, self._note) for number in self._numbers}

    def _note(self, number: int, _: Optional[FrameType]) -> None:
        self.to_save = True
        if number in self._ends_on:
            self.ended_by = number

    def close(self) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before = {}


def _torch() -> Any:
    """PyTorch where the program uses it."""
    return sys.modules.get("torch")


def _distributed() -> Any:
    torch = _torch()
    distributed = getattr(torch, "distributed", None)
    return distributed if distributed is not None and distributed.is_available() and distributed.is_initialized() else None


def _plain(value: Any) -> Any:
    """What NumPy says of its generator, in what can be read back everywhere."""
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    return value.tolist() if hasattr(value, "tolist") else value


def _random_state() -> dict[str, Any]:
    """Of this process."""
    state: dict[str, Any] = {"python": random.getstate()}
    if numpy := sys.modules.get("numpy"):
        state["numpy"] = _plain(numpy.random.get_state(legacy=False))
    if torch := _torch():
        state["torch"] = torch.get_rng_state()
        if torch.cuda.is_available() and torch.cuda.is_initialized():
            state["cuda"] = torch.cuda.get_rng_state_all()
    return state


def _set_random_state(state: dict[str, Any]) -> None:
    version, numbers, gauss = state["python"]
    random.setstate((version, tuple(numbers), gauss))
    numpy, torch = sys.modules.get("numpy"), _torch()
    if numpy and "numpy" in state:
        numpy.random.set_state(state["numpy"])
    if torch and "torch" in state:
        torch.set_rng_state(state["torch"])
    if torch and len(state.get("cuda", [])) == torch.cuda.device_count() and "cuda" in state:
        torch.cuda.set_rng_state_all(state["cuda"])


def _derive_random_state(state: dict[str, Any], rank: int) -> None:
    """One for each of other processes than there were: no two have the same."""
    _set_random_state(state)
    seed = (random.getrandbits(32) + rank) % (1 << 32)
    random.seed(seed)
    if numpy := sys.modules.get("numpy"):
        numpy.random.seed(seed)
    if torch := _torch():
        torch.manual_seed(seed)


def _write(to: Union[Path, BinaryIO], document: object) -> None:
    if torch := _torch():
        torch.save(document, to)
    elif isinstance(to, Path):
        with open(to, "wb") as file:
            pickle.dump(document, file)
    else:
        pickle.dump(document, to)


class _PlainUnpickler(pickle.Unpickler):
    """Reads numbers, text, lists and dictionaries: nothing that could run."""

    def find_class(self, module: str, name: str) -> NoReturn:
        raise pickle.UnpicklingError(f"it was written without PyTorch and has a {module}.{name}; where PyTorch is used only what it writes "
                                     "may have more than numbers, text, lists and dictionaries")


def _read(file: BinaryIO) -> Any:
    """As it was written: by PyTorch, or before the program used it. With PyTorch nothing of a file is run."""
    is_of_torch = file.read(len(_ZIP)) == _ZIP
    file.seek(0)
    if not is_of_torch:
        return (_PlainUnpickler if _torch() else pickle.Unpickler)(file).load()
    torch: Any = importlib.import_module("torch")
    return torch.load(file, map_location="cpu", weights_only=True)


def _prove(path: Path, states: dict[str, Any]) -> None:
    """That a file can be read again. Errors: TypeError with the state that cannot."""
    try:
        with open(path, "rb") as file:
            _read(file)
    except Exception as error:
        which = next((name for name, one in states.items() if not _is_readable(one)), ", ".join(states))
        way = "what is made of numbers, text, tensors, lists and dictionaries can"
        raise TypeError(f"the state of '{which}' can be saved and not read again; {way}: {error}") from error


def _is_readable(state: object) -> bool:
    written = io.BytesIO()
    _write(written, state)
    written.seek(0)
    try:
        _read(written)
    except Exception:
        return False
    return True


class Checkpoint:
    """The state of a training, and its step. Whatever there is in `directory` is resumed from at once.

    keep: so many of the newest stay. saves_on: signals on which it is saved; ends_on: and the program ends, with 128 + its number.
    In a process group of torch.distributed all processes agree at each step; the first one writes, all of them resume."""

    # The last of torch.distributed, kept to the end: a thread of gloo that frees it while Python before 3.14 ends aborts it.
    _work: Any = None

    def __init__(self, directory: os.PathLike[str] | str, *, keep: int = 3, saves_on: Sequence[int] = (signal.SIGUSR1,),
                 ends_on: Sequence[int] = (signal.SIGTERM,), **states: Stateful) -> None:
        if not states:
            raise OptionError("a checkpoint needs what it is of: model=model, optimizer=optimizer")
        for name, one in states.items():
            if not callable(getattr(one, "state_dict", None)) or not callable(getattr(one, "load_state_dict", None)):
                raise OptionError(f"{name}={one!r} has no state_dict() and load_state_dict()")
        self._states = states
        self._files = Files(directory, "pt", keep)
        self._is_proven = False
        self.step = 0
        """how many steps are done"""
        self.resumed_from: Optional[Path] = None
        self._told = Told(saves_on, ends_on)
        try:
            if self._is_first:
                self._files.tidy()
            self._resume()
        except BaseException:
            self.close()
            raise

    @property
    def _is_first(self) -> bool:
        distributed = _distributed()
        return distributed is None or distributed.get_rank() == 0

    def _resume(self) -> None:
        """Errors: what load_state_dict() says of a state that is of another model; that is no broken file."""
        found = self._files.newest()
        if found is None:
            return
        self.step, self.resumed_from = found
        with open(self.resumed_from, "rb") as file:
            document = _read(file)
        missing = sorted(set(self._states) ^ set(document["states"]))
        if missing:
            raise ValueError(f"'{self.resumed_from}' and this program do not have the same states: {', '.join(missing)}")
        for name, one in self._states.items():
            one.load_state_dict(document["states"][name])
        self._resume_random(document["random"])

    def _resume_random(self, saved: Sequence[dict[str, Any]]) -> None:
        distributed = _distributed()
        rank, processes = (distributed.get_rank(), distributed.get_world_size()) if distributed is not None else (0, 1)
        if len(saved) == processes:
            _set_random_state(saved[rank])
        else:
            _derive_random_state(saved[0], rank)

    def save(self) -> Optional[Path]:
        """Now; the file, where this process is the one that writes. Errors: TypeError, at the first one, of a state that could not
        be read again."""
        distributed = _distributed()
        random_states = [_random_state()]
        if distributed is not None:
            random_states = [{}] * distributed.get_world_size()
            distributed.all_gather_object(random_states, _random_state())
        path = self._files.save(self.step, lambda part: self._write(part, random_states)) if self._is_first else None
        if distributed is not None:
            Checkpoint._work = distributed.barrier(async_op=True)
            Checkpoint._work.wait()
        return path

    def _write(self, path: Path, random_states: list[dict[str, Any]]) -> None:
        states = {name: one.state_dict() for name, one in self._states.items()}
        _write(path, {"states": states, "random": random_states})
        if not self._is_proven:
            _prove(path, states)
            self._is_proven = True

    def _agreed(self) -> tuple[bool, int]:
        """Whether any process was told to save, and by which signal one was told to end."""
        to_save, ended_by = int(self._told.to_save), self._told.ended_by
        self._told.to_save = False
        distributed = _distributed()
        if distributed is not None:
            torch = _torch()
            device = "cuda" if distributed.get_backend() == "nccl" else "cpu"
            both = torch.tensor((to_save, ended_by), device=device)
            Checkpoint._work = distributed.all_reduce(both, op=distributed.ReduceOp.MAX, async_op=True)
            Checkpoint._work.wait()
            to_save, ended_by = (int(one) for one in both)
        return bool(to_save), ended_by

    def steps(self, total: int, *, every: Optional[int] = None) -> Iterator[int]:
        """Those that are left of `total`, from 0 on. Saved after each `every`, after the last, and when told; SystemExit where it
        was told to end. Behind the loop, also where it was left before its end, signals do what they did before.

        Errors: OptionError of an `every` below 1."""
        if every is not None and every < 1:
            raise OptionError(f"every={every!r}: so many steps are between two saves, at least 1; None for the last only")
        return self._steps(total, every)

    def _steps(self, total: int, every: Optional[int]) -> Iterator[int]:
        self._told.listen()
        try:
            while self.step < total:
                yield self.step
                self.step += 1
                is_told, ended_by = self._agreed()
                if is_told or self.step == total or (every is not None and self.step % every == 0):
                    self.save()
                if ended_by and self.step < total:
                    raise SystemExit(128 + ended_by)
        finally:
            self.close()

    def close(self) -> None:
        """Signals do what they did before."""
        self._told.close()


def keras_callback(directory: os.PathLike[str] | str, model: Any, *, keep: int = 3, saves_on: Sequence[int] = (signal.SIGUSR1,),
                   ends_on: Sequence[int] = (signal.SIGTERM,)) -> Any:
    """For Keras: `saves = keras_callback("checkpoints", model)`, then `model.fit(..., initial_epoch=saves.epoch, callbacks=[saves])`.

    The compiled model has what was saved: weights and optimizer. Saved after each epoch, and when told; an epoch that was begun is
    made again. Behind the `fit()` of the model, also one that raises, signals do what they did before."""
    from gflow.train._keras import make_callback

    return make_callback(Files(directory, "npz", keep), model, Told(saves_on, ends_on))
