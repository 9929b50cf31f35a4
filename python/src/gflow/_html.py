# SPDX-License-Identifier: Apache-2.0
"""Jobs as notebooks show them. Whatever a person wrote is text and never markup."""

from __future__ import annotations

import base64
import html
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from gflow._calls import ENDED

_MOST_ROWS = 200
_LONGEST_TEXT = 300
_COLOURS = {"Running": "#0a7d32", "Finished": "#0a7d32", "Failed": "#b3261e", "Timeout": "#b3261e", "Lost": "#b3261e"}
_WAITS = "#8a6100"


def text_of(value: object) -> str:
    """In one line; what is not UTF-8 is wrapped by the API, what is no character to see is written as its number."""
    if isinstance(value, Mapping) and "base64" in value:
        value = base64.b64decode(value["base64"]).decode(errors="replace")
    shown = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in str(value))
    return shown if len(shown) <= _LONGEST_TEXT else shown[:_LONGEST_TEXT] + "..."


def escaped(value: object) -> str:
    return html.escape(text_of(value), quote=True)


def span_text(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}"


def reasons_of(told: Mapping[str, Any]) -> str:
    """Why it waits, or how it ended."""
    if told.get("blockers"):
        return "; ".join(text_of(one.get("text", "")) for one in told["blockers"])
    outcome = told.get("outcome") or {}
    if outcome.get("message"):
        return text_of(outcome["message"])
    if outcome.get("signal"):
        return f"by signal {outcome['signal']}"
    return f"exit code {outcome['exit_code']}" if outcome.get("exit_code") else text_of(told.get("reason") or "")


def state_html(told: Mapping[str, Any]) -> str:
    state = told.get("status", "")
    colour = _COLOURS.get(state, "inherit" if state in ENDED else _WAITS)
    return f'<b style="color:{colour}">{escaped(state)}</b>'


def _gpus_of(told: Mapping[str, Any]) -> str:
    wanted = told.get("spec", {}).get("request", {}).get("gpus", 0)
    return ",".join(str(one) for one in told.get("gpu_indices") or []) or (f"{wanted} wanted" if wanted else "")


def _row(cells: Iterable[str], tag: str = "td") -> str:
    return "<tr>" + "".join(f'<{tag} style="text-align:left">{cell}</{tag}>' for cell in cells) + "</tr>"


def _cells(told: Mapping[str, Any]) -> list[str]:
    return [escaped(told.get("id", "")), escaped(told.get("spec", {}).get("name", "")),
            escaped(told.get("user", {}).get("name", "")), state_html(told), span_text(told.get("run_time_seconds", 0)),
            escaped(_gpus_of(told)), escaped(reasons_of(told))]


_HEADS = ("Job", "Name", "User", "State", "Time", "GPUs", "Reason")


def jobs_html(jobs: Sequence[Mapping[str, Any]]) -> str:
    """A row for each."""
    rows = "".join(_row(_cells(told)) for told in jobs[:_MOST_ROWS])
    more = f"<p>{len(jobs) - _MOST_ROWS} more</p>" if len(jobs) > _MOST_ROWS else ""
    return f"<table><thead>{_row(_HEADS, 'th')}</thead><tbody>{rows}</tbody></table>{more}"


def job_html(told: Mapping[str, Any]) -> str:
    """What is known of one; its command below."""
    command = escaped(told.get("spec", {}).get("command", ""))
    return f"{jobs_html([told])}<code>{command}</code>"


def line_html(told: Mapping[str, Any]) -> str:
    """One line for a cell: what its job does, and why."""
    why, gpus = escaped(reasons_of(told)), escaped(_gpus_of(told)) if told.get("started") else ""
    where = f" on GPU {gpus}" if gpus else ""
    reason = f": {why}" if why else ""
    return f"Job {escaped(told.get('id', ''))} {state_html(told)}{where}{reason}"
