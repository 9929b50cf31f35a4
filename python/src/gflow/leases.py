# SPDX-License-Identifier: Apache-2.0
"""GPUs for this program as long as it wants them: an allocation that is held, watched and given back."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Optional

from gflow import submission
from gflow._calls import Calls
from gflow._steps import Deadline
from gflow._sync import Driver, Iteration, shares_processes
from gflow.devices import Devices, EnvironmentChange, devices_of_allocation
from gflow.errors import GflowError, LeaseLost, NotFound, WrongState

if TYPE_CHECKING:
    from gflow import documents
    from gflow._servers import Server
    from gflow.submission import Seconds

_LOGGER = logging.getLogger("gflow")
HEARTBEAT_SECONDS = 60


class LeaseTerms:
    """What was asked for, and how it is kept: by this process where gflowd can see it, else by a heartbeat."""

    def __init__(self, server: Server, need: Mapping[str, Any], *, wait: bool, ttl: Optional[Seconds]) -> None:
        self.need: dict[str, Any] = {**need, "wait": wait}
        self.heartbeat: Optional[int] = None
        is_seen = shares_processes(server)
        if is_seen:
            self.need["pid"] = os.getpid()
        if ttl is not None:
            self.need["ttl_seconds"] = submission.seconds_of(ttl, "ttl")
        elif not is_seen:
            self.heartbeat = self.need["ttl_seconds"] = HEARTBEAT_SECONDS


def note_of_loss(devices: Devices, why: str, on_lost: Optional[Callable[[str], object]]) -> None:
    """They are gone, and whoever is to know is told."""
    devices.lost = why
    if on_lost is None:
        _LOGGER.warning("allocation %s ended before it was given back: %s", devices.allocation_id, why)
    else:
        on_lost(why)


def check_is_free(is_held: bool) -> None:
    """A lease is one allocation: with a second one, nobody would give back the first. Errors: GflowError."""
    if is_held:
        raise GflowError("this lease has its GPUs already, or waits for them: give them back first, or ask for more with another lease")


class Lease:
    """What `gpus()` gives: `with client.gpus(2) as devices:` The environment is set and put back; GPUs that were taken back in between
    are a LeaseLost at the end, and told at once to `on_lost(why)`, which is called on another thread, or else logged.

    >>> lease = gflow.gpus(1)
    >>> lease.acquire().indices
    [0]
    >>> lease.release()
    """

    def __init__(self, driver: Driver, calls: Calls, terms: LeaseTerms, *, timeout: Optional[float] = None,
                 set_environment: bool = True, on_lost: Optional[Callable[[str], object]] = None) -> None:
        self._driver = driver
        self._calls = calls
        self._terms = terms
        self._timeout = timeout
        self._sets_environment = set_environment
        self._on_lost = on_lost
        self._change: Optional[EnvironmentChange] = None
        self._devices: Optional[Devices] = None
        self._lock = threading.Lock()  # of:
        self._is_held = False  # or asked for
        self._watched: Optional[Iteration[str]] = None
        self._watcher = threading.Thread()
        self._pid = os.getpid()

    def __enter__(self) -> Devices:
        return self.acquire()

    def __exit__(self, kind: Optional[type[BaseException]], error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        try:
            self.release()
        except GflowError:
            if kind is None:
                raise
            _LOGGER.warning("what went wrong while GPUs were given back", exc_info=True)

    def acquire(self) -> Devices:
        """The GPUs, once they are this program's.

        Errors: NoGpus, WaitTimeout, and what a request that could never be met is refused with; GflowError where it has them already."""
        with self._lock:
            check_is_free(self._is_held)
            self._is_held = True
        deadline = Deadline(self._timeout)
        asked = _Asked(self, deadline)
        try:
            told = self._driver.run(self._calls.await_allocation(asked.told(), deadline))
            devices = devices_of_allocation(told)
            assert devices.allocation_id is not None
            self._watched = Iteration(self._driver, self._calls.watch(devices.allocation_id, self._terms.heartbeat))
            self._watcher = threading.Thread(target=self._watch, args=(devices,), name="gflow-lease", daemon=True)
            self._change = EnvironmentChange(devices.environment) if self._sets_environment else None
            self._watcher.start()
            self._devices = devices
            return devices
        except BaseException:
            self._forget()
            self._undo()
            asked.let_go()
            raise

    def release(self) -> None:
        """Gives them back. In a process that was forked from theirs it gives nothing back: they are that one's.

        Errors: LeaseLost where they had been taken back before; Unreachable, after which it can be called again."""
        devices = self._devices
        if devices is None:
            return
        try:
            self._undo()
            if self._pid != os.getpid():
                self._forget()
                return
            if self._watcher is not threading.current_thread():
                self._watcher.join()
            lost = devices.lost or self._give_back(devices.allocation_id)
        except GflowError:
            raise
        except BaseException:  # Ctrl-C, for one: nobody may come back for it
            self._forget()
            self._give_back_behind(devices.allocation_id)
            raise
        self._forget()
        if lost:
            raise LeaseLost(devices.allocation_id or 0, lost)

    def _forget(self) -> None:
        self._devices = None
        self._is_held = False

    def _undo(self) -> None:
        change, self._change = self._change, None
        if change is not None:
            change.undo()
        if self._watched is not None:
            self._watched.close()

    def _give_back_behind(self, allocation_id: Optional[int]) -> threading.Thread:
        """On a thread, so that what interrupts this one does not keep them from being given back."""

        def give_back() -> None:
            try:
                self._give_back(allocation_id)
            except GflowError:
                _LOGGER.warning("allocation %s could not be given back", allocation_id, exc_info=True)

        behind = threading.Thread(target=give_back, name="gflow-release", daemon=True)
        behind.start()
        return behind

    def _give_back(self, allocation_id: Optional[int]) -> str:
        """Why they were not held any more; "" if they were."""
        if allocation_id is None:
            return ""
        try:
            self._driver.run(self._calls.give_back(allocation_id))
        except (WrongState, NotFound) as error:
            return error.detail
        return ""

    def _watch(self, devices: Devices) -> None:
        assert self._watched is not None
        try:
            for why in self._watched:
                note_of_loss(devices, why, self._on_lost)
                return
        except GflowError as error:  # a token that has expired, for one
            note_of_loss(devices, f"it cannot be kept: {error}", self._on_lost)


class _Asked:
    """An allocation that is asked for on a thread of its own: an exception that a signal raises (Ctrl-C) between its
    answer and whoever is to give it back would leave it to nobody."""

    def __init__(self, lease: Lease, deadline: Deadline) -> None:
        self._lease = lease
        self._deadline = deadline
        self._lock = threading.Lock()
        self._told: Optional[documents.GpuAllocation] = None
        self._error: Optional[BaseException] = None
        self._is_unwanted = False
        self._answered = threading.Event()

    def told(self) -> documents.GpuAllocation:
        threading.Thread(target=self._ask, name="gflow-allocate", daemon=True).start()
        self._answered.wait()
        if self._error is not None:
            raise self._error
        assert self._told is not None
        return self._told

    def let_go(self) -> None:
        """Returns once they are given back; where no answer has come, they will be when it does."""
        with self._lock:
            self._is_unwanted = True
            told = self._told
        if told is not None:
            self._lease._give_back_behind(told["allocation_id"]).join()

    def _ask(self) -> None:
        lease = self._lease
        try:
            told = lease._driver.run(lease._calls.allocate(lease._terms.need, self._deadline))
        except BaseException as error:
            self._error = error
        else:
            with self._lock:
                self._told = told
                is_unwanted = self._is_unwanted
            if is_unwanted:
                lease._give_back_behind(told["allocation_id"])
        finally:
            self._answered.set()
