# SPDX-License-Identifier: Apache-2.0
"""Jobs as they are listed: which of them, in which order, and what is told of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Optional, TypedDict, Union

from gflow.errors import OptionError
from gflow.submission import check_names, id_of, time_of

if TYPE_CHECKING:
    from datetime import datetime

    from gflow import documents
    from gflow.submission import JobRef

class JobQuery(TypedDict, total=False):
    """Which jobs, as the flags of `gqueue` have it; all that is said has to be so."""

    state: Union[str, Sequence[str], None]
    user: Union[str, Sequence[str], None]
    name: Optional[str]
    """a pattern: "train*" """
    project: Optional[str]
    group: Optional[str]
    job: Union[JobRef, Sequence[JobRef], None]
    since: Optional[datetime]
    """submitted then or later"""
    sort: Optional[str]
    """"id", "priority", ...; "-id" is the other way round"""
    reverse: Optional[bool]
    fields: Optional[Sequence[str]]
    """only these, and ids: "status", "spec.name" """


def some_ids(jobs: Union[JobRef, Sequence[JobRef], None]) -> Optional[list[int]]:
    if jobs is None:
        return None
    return [id_of(one) for one in (jobs if isinstance(jobs, Sequence) else [jobs])]


def check_one_of_each(query: Mapping[str, object], *names: str) -> None:
    """That not several are asked for where the API takes one. Errors: OptionError."""
    for name in names:
        value = query.get(name)
        if value is not None and not isinstance(value, str):
            raise OptionError(f"{name}={value!r}: only one {name} can be asked for, and it is a text")


def parameters_of(query: JobQuery) -> dict[str, object]:
    """As the API has them."""
    check_names("a listing", query, JobQuery)
    check_one_of_each(query, "project", "group")
    parameters: dict[str, object] = dict(query)
    parameters["job"] = some_ids(query.get("job"))
    since = query.get("since")
    parameters["since"] = None if since is None else time_of(since, "since")
    return parameters


class JobList(list["documents.JobViewPart"]):
    """Jobs as they are listed, a table in notebooks."""

    def _repr_html_(self) -> str:
        from gflow._html import jobs_html

        return jobs_html(self)
