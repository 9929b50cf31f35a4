# SPDX-License-Identifier: Apache-2.0
"""`%load_ext gflow`: `%gflow` shows the queue, `%%gflow --gpus 1` runs its cell as a job."""

from __future__ import annotations

import argparse
import keyword
import shlex
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn, Optional, cast

from IPython.core import display as markup
from IPython.core import display_functions
from IPython.core.error import UsageError

from gflow import _html
from gflow._cell import AWAITS, FILE, run_cell
from gflow._default import default_client
from gflow.errors import GflowError
from gflow.functions import FunctionJob, submit_calls

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from gflow.submission import SubmitOptions

_NOT_ENDED = ["Queued", "Hold", "Starting", "Running", "Suspended", "Completing"]
_BY_IPYTHON = "get_ipython()"
_UNITS = (1, 60, 3600)
_HTML: Any = markup.HTML  # neither is typed
_DisplayHandle: Any = display_functions.DisplayHandle


def seconds_of_time(text: str) -> int:
    """As gbatch reads "30" (minutes), "10:30", "4:00:00"."""
    parts = text.split(":")
    if len(parts) > len(_UNITS) or not all(part.isdigit() for part in parts):
        raise argparse.ArgumentTypeError(f"'{text}' is no time, as 30 (minutes), 10:30 or 4:00:00")
    if len(parts) == 1:
        return int(parts[0]) * 60
    return sum(int(part) * unit for part, unit in zip(reversed(parts), _UNITS))


def _names(text: Optional[str]) -> list[str]:
    return [name.strip() for name in (text or "").split(",") if name.strip()]


def _variable(text: str) -> str:
    """A name that the notebook can say."""
    if not text.isidentifier() or keyword.iskeyword(text):
        raise argparse.ArgumentTypeError(f"'{text}' is not the name of a variable")
    return text


def _variables(text: str) -> list[str]:
    return [_variable(name) for name in _names(text)]


def options_of(said: argparse.Namespace) -> SubmitOptions:
    given = {name: getattr(said, name) for name in ("gpus", "gpu_memory", "cpus", "memory", "name", "project", "priority")}
    options = {name: value for name, value in given.items() if value is not None}
    if said.time is not None:
        options["time_limit"] = said.time
    if said.shared:
        options["shared"] = True
    options.setdefault("name", "cell")
    options["env"] = {"PYTHONUNBUFFERED": "1"}  # what it prints is to be seen when it does
    return cast("SubmitOptions", options)


class _Line:
    """One line under a cell, which says how its job is."""

    def __init__(self) -> None:
        self._handle: Any = _DisplayHandle()
        self._is_shown = False

    def show(self, told: Any) -> None:
        line = _HTML(_html.line_html(told))
        if self._is_shown:
            self._handle.update(line)
        else:
            self._is_shown = True
            self._handle.display(line)


def _show_until_it_runs(job: FunctionJob[dict[str, Any]], line: _Line) -> None:
    """What the job waits for as that changes."""
    with job.changes() as changes:
        for told in changes:
            line.show(told)
            if told["started"] is not None:
                return


def accompany(job: FunctionJob[dict[str, Any]]) -> dict[str, Any]:
    """What the cell left, its output shown as it comes. An interrupt cancels the job."""
    line = _Line()
    try:
        _show_until_it_runs(job, line)
        for text in job.follow():
            sys.stdout.write(text)
            sys.stdout.flush()
        told = job.wait()
        line.show(told)
        return job.result()
    except KeyboardInterrupt:
        try:
            job.cancel()
        except GflowError:
            pass  # it has ended meanwhile
        line.show(job.wait())
        raise
    finally:
        if job.done():
            job.folder.drop(job.index)


class _Parser(argparse.ArgumentParser):
    """Says what is wrong as magics do."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"%%gflow: {message}")


def _words(line: str) -> list[str]:
    try:
        return shlex.split(line)
    except ValueError as error:
        raise UsageError(f"%%gflow: {error} in '{line}'; quotes come in pairs: --gpus '2(V100)'") from None


def _parser() -> _Parser:
    parser = _Parser(prog="%%gflow", add_help=False)
    parser.add_argument("--gpus", "-g", help="2, 0.5, '2(V100)', '8G,0.5'")
    parser.add_argument("--gpu-memory", help="that has to be free on each GPU: 16G")
    parser.add_argument("--shared", action="store_true", help="takes turns on its GPUs; needs --gpu-memory")
    parser.add_argument("--cpus", type=int, help="CPUs to reserve")
    parser.add_argument("--memory", "-m", help="host memory: 20G")
    parser.add_argument("--time", "-t", type=seconds_of_time, help="time limit: 30 (minutes), 10:30, 4:00:00")
    parser.add_argument("--name", "-n", help="of the job (default: cell)")
    parser.add_argument("--project", "-P", help="the job belongs to")
    parser.add_argument("--priority", "-p", type=int, help="0 to 255; higher starts first")
    parser.add_argument("--send", metavar="NAMES", help="variables of the notebook that the cell gets: model,lr")
    parser.add_argument("--bring", metavar="NAMES", type=_variables, default=[], help="variables the cell leaves that the notebook gets: loss")
    parser.add_argument("--job", type=_variable, metavar="NAME", help="do not wait: the job is this variable")
    return parser


def python_of(transformed: str, cell: str) -> str:
    """The cell as IPython reads it. Errors: UsageError with the line of what only IPython runs, or is no Python."""
    lines = cell.splitlines()
    for number, (line, made) in enumerate(zip(lines, transformed.splitlines()), 1):
        if made.count(_BY_IPYTHON) > line.count(_BY_IPYTHON):
            raise UsageError(f"%%gflow: line {number}: '{line.strip()}' is run by IPython, and the cell by a Python of its own: put it into a "
                             "cell of the notebook, or write it in Python, as subprocess.run() is for '!'")
    try:
        compile(transformed, FILE, "exec", AWAITS, dont_inherit=True)
    except SyntaxError as error:
        wrong = lines[error.lineno - 1].strip() if error.lineno and error.lineno <= len(lines) else ""
        raise UsageError(f"%%gflow: line {error.lineno}: {error.msg}: '{wrong}'") from None
    return transformed


class Magic:
    """`%gflow` shows your queue. `%%gflow --gpus 1` runs its cell as a job: a Python of its own, in this directory, which has of
    the notebook what --send names. It may await; it has no magics. Interrupting it cancels the job."""

    def __init__(self, shell: InteractiveShell) -> None:
        self._shell: Any = shell  # its calls are not typed
        self._variables: dict[str, Any] = shell.user_ns

    def __call__(self, line: str, cell: Optional[str] = None) -> object:
        try:
            if cell is not None:
                return self._run(_parser().parse_args(_words(line)), cell)
            if line.strip():
                raise UsageError("%gflow shows the queue and takes no options; a cell begins with %%gflow")
            return default_client().jobs(state=_NOT_ENDED)
        except GflowError as error:  # its text says all; the lines of this package do not help
            raise UsageError(str(error)) from None

    def _run(self, said: argparse.Namespace, cell: str) -> Optional[FunctionJob[dict[str, Any]]]:
        source = python_of(self._shell.transform_cell(cell), cell)
        call: tuple[list[Any], dict[str, Any]] = ([source, self._sent(_names(said.send)), said.bring], {})
        job: FunctionJob[dict[str, Any]] = submit_calls(default_client(), run_cell, [call], options_of(said))[0]
        if said.job:
            self._variables[said.job] = job
            return job
        self._variables.update(accompany(job))
        return None

    def _sent(self, names: Sequence[str]) -> dict[str, Any]:
        missing = [name for name in names if name not in self._variables]
        if missing:
            raise UsageError(f"--send: there is no variable '{missing[0]}'")
        return {name: self._variables[name] for name in names}


def load_ipython_extension(shell: InteractiveShell) -> None:
    magic = Magic(shell)

    def gflow(line: str, cell: Optional[str] = None) -> object:
        return magic(line, cell)

    gflow.__doc__ = f"{Magic.__doc__}\n\n{_parser().format_help()}"
    register: Any = shell.register_magic_function  # its type is that of what it is made from
    register(gflow, "line_cell", "gflow")
