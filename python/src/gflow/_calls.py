# SPDX-License-Identifier: Apache-2.0
"""What each call of a client asks, and what it makes of the answers: steps, taken by both clients."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Optional, Union
from urllib.parse import quote, urlencode

from gflow import _events as event_stream
from gflow import submission as written
from gflow._http import Ask
from gflow._steps import Deadline, Give, More, Opened, Patience, Pause, Steps, asked
from gflow.changes import document_of, explanation_of
from gflow.errors import ConnectionLost, NoGpus, NotFound, Problem, RequestError, ServerTimeout, Unreachable, WaitTimeout, WrongState
from gflow.listing import check_one_of_each, parameters_of

if TYPE_CHECKING:
    from datetime import datetime, timedelta

    from gflow import documents
    from gflow.changes import Explanation, JobChanges
    from gflow.listing import JobQuery
    from gflow.submission import Gpus, JobRef, Submission

ENDED = frozenset({"Finished", "Failed", "Cancelled", "Timeout", "Lost"})
API = "/api/v1"

_POLL = 55  # gflowd answers who waits for news at the latest then
_PAGE = 1000
_MOST_CHANGED = 10_000
"""jobs that one request may change"""
_SILENT_STREAM = 45.0  # a stream of events says something each 15 s
_QUIET_LOG = 600.0
_FOR_EVER = 1e9
_GIVING_BACK = 10.0
_BETWEEN_LOOKS = 0.1  # where much happens
# gflowd gives a user so many connections, whatever clients they are of: those that listen leave some to who gives back.
_listening = threading.BoundedSemaphore(64)
_UNHEARD_LOOK = 1.0


def query_of(named: Mapping[str, object]) -> str:
    """"?a=1&b=x,y"; what is None is not there."""
    pairs = []
    for name, value in named.items():
        if value is None:
            continue
        if isinstance(value, bool):
            value = "true" if value else "false"
        elif isinstance(value, (list, tuple, set, frozenset)):
            value = ",".join(str(one) for one in value)
        pairs.append((name, str(value)))
    return "?" + urlencode(pairs, safe=",", errors="surrogatepass", quote_via=quote) if pairs else ""


def _parts_of(jobs: Iterable[JobRef]) -> list[list[int]]:
    """In order, so many as one request may name at a time."""
    listed = sorted(written.id_of(one) for one in jobs)
    return [listed[begin:begin + _MOST_CHANGED] for begin in range(0, len(listed), _MOST_CHANGED)]


class Calls:
    def __init__(self, patience: float) -> None:
        self.patience = patience
        """Seconds a gflowd that is away is tried again where that is safe."""

    def call(self, method: str, target: str, document: Optional[object] = None, key: Optional[str] = None,
             patience: Optional[float] = None, is_idempotent: bool = False) -> Steps[Any]:
        """Any route: the document it answers."""
        headers = {"Idempotency-Key": key} if key else {}
        ask = Ask(method, target, document, headers, is_idempotent=is_idempotent)
        answer = yield from asked(ask, self.patience if patience is None else patience)
        return answer.document()

    def look(self, target: str, document: object) -> Steps[Any]:
        """The same of a POST that is twice as once: it changes nothing."""
        return (yield from self.call("POST", target, document, is_idempotent=True))

    def statistics(self, since: Optional[datetime], until: Optional[datetime],
                   parameters: Mapping[str, object]) -> Steps[documents.Statistics]:
        check_one_of_each(parameters, "project", "by")
        times = {name: None if time is None else written.time_of(time, name) for name, time in (("since", since), ("until", until))}
        told: documents.Statistics = yield from self.call("GET", f"{API}/statistics{query_of({**times, **parameters})}")
        return told

    # -- submitting

    def request(self, gpus: Gpus) -> Steps[documents.Request]:
        """gflowd reads what people write, so that it is read in one way everywhere."""
        text = written.option_of_gpus(gpus)
        if written.is_plain(text):
            return {"gpus": int(text)}
        told = yield from self.look(f"{API}/gpu/validate", {"gpus": text})
        if told["request"] is None:
            raise RequestError(text, told["error_message"], end=len(text), is_whole=True)
        return written.request_of(told["request"])

    def validate(self, gpus: Gpus) -> Steps[documents.GpuValidation]:
        told: documents.GpuValidation = yield from self.look(f"{API}/gpu/validate", {"gpus": written.option_of_gpus(gpus)})
        return told

    def items(self, submissions: Sequence[Submission]) -> Steps[list[documents.SubmitRequestItem]]:
        items: list[documents.SubmitRequestItem] = []
        requests: dict[str, documents.Request] = {}
        places: dict[int, int] = {}
        for place, one in enumerate(submissions):
            gpus = written.option_of_gpus(one.options.get("gpus", 0))
            if gpus not in requests:
                requests[gpus] = yield from self.request(gpus)
            line, payload = written.payload_of(one.command, one.options)
            request = written.complete(requests[gpus].copy(), one.options)
            spec = written.spec_of(one.options, request, line)
            spec["dependencies"], siblings = written.dependencies_of(one.options, places)
            items.append({"spec": spec, "payload": payload, "depends_on_siblings": siblings})
            places[id(one)] = place
        return items

    def submit(
        self, submissions: Sequence[Submission], key: Optional[str] = None
    ) -> Steps[list[documents.SubmitAnswerItemShown]]:
        items = yield from self.items(submissions)
        return (yield from self.submit_items(items, key))

    def submit_items(
        self, items: Sequence[documents.SubmitRequestItem], key: Optional[str] = None
    ) -> Steps[list[documents.SubmitAnswerItemShown]]:
        """All of them or none, and once, whatever the network does."""
        if not items:
            return []
        told = yield from self.call("POST", f"{API}/jobs", {"items": items}, key or uuid.uuid4().hex)
        answers: list[documents.SubmitAnswerItemShown] = told["items"]
        return answers

    def submit_array(self, submission: Submission, tasks: Sequence[int], key: Optional[str] = None) -> Steps[list[tuple[int, str]]]:
        """A job for each task: their ids and names."""
        if not tasks:
            return []
        whole = (yield from self.items([submission]))[0]
        answers = yield from self.submit_items(written.tasks_of(whole, tasks), key)
        ids = [one["id"] + place for one in answers for place in range(one["count"])]
        if base := submission.options.get("name"):
            return [(job, f"{base}_{int(task)}") for job, task in zip(ids, tasks)]
        listed = yield from self.jobs_of(ids, ["spec.name"])
        names = {one["id"]: one.get("spec", {}).get("name", "") for one in listed}
        return [(job, names.get(job, "")) for job in ids]

    def check(self, submissions: Sequence[Submission]) -> Steps[None]:
        items = yield from self.items(submissions)
        yield from self.look(f"{API}/jobs/check", {"items": items})

    # -- jobs

    def jobs(self, query: JobQuery, most: Optional[int]) -> Steps[list[documents.JobViewPart]]:
        """Page by page, in whatever order."""
        parameters = parameters_of(query)
        found: list[documents.JobViewPart] = []
        after: Optional[str] = None
        while most is None or len(found) < most:
            limit = _PAGE if most is None else min(_PAGE, most - len(found))
            page = yield from self.call("GET", f"{API}/jobs{query_of({**parameters, 'limit': limit, 'after': after})}")
            found += page["jobs"]
            after = page["next"]
            if after is None:
                break
        return found

    def job(self, job: JobRef) -> Steps[documents.Job]:
        told: documents.Job = yield from self.call("GET", f"{API}/jobs/{written.id_of(job)}")
        return told

    def act(self, verb: str, jobs: Iterable[JobRef], **more: object) -> Steps[list[int]]:
        return (yield from self._change("POST", f"{API}/jobs/{verb}", jobs, more))

    def _change(self, method: str, target: str, jobs: Iterable[JobRef], how: Mapping[str, object]) -> Steps[list[int]]:
        """All or none of those that one request names."""
        done: list[int] = []
        for part in _parts_of(jobs):
            told = yield from self.call(method, target, {"jobs": part, **how})
            done += told["jobs"]
        return done

    def cancel(self, jobs: Iterable[JobRef], signal: int) -> Steps[list[int]]:
        """The newest first: those that depend on others end with these."""
        done: list[int] = []
        for part in reversed(_parts_of(jobs)):
            done += yield from self._cancel_some(part, signal)
        return sorted(done)

    def _cancel_some(self, jobs: list[int], signal: int) -> Steps[list[int]]:
        """Asked again where no answer came: then those that have ended by now were ended by the first request, or would have been."""
        ask = Ask("POST", f"{API}/jobs/cancel", {"jobs": jobs, "signal": signal}, is_idempotent=True)
        try:
            answer = yield from asked(ask, self.patience)
        except WrongState:
            if ask.times_sent == 1:
                raise
            yield from self.cancel_unended(jobs, signal)
            return jobs
        done: list[int] = answer.document()["jobs"]
        return done

    def cancel_unended(self, jobs: Iterable[JobRef], signal: int = 0) -> Steps[None]:
        """Ends those that have not ended, all at once; who is refused as some end in that moment halves them."""
        groups = [(yield from self.unended([written.id_of(one) for one in jobs]))]
        while groups:
            group = groups.pop()
            try:
                yield from self.cancel(group, signal)
            except (WrongState, NotFound):
                if len(group) > 1:
                    half = len(group) // 2
                    groups += [group[half:], group[:half]]

    def unended(self, jobs: Sequence[int]) -> Steps[list[int]]:
        """Of these, those that have not ended. What gflowd does not know any more has."""
        listed = yield from self.jobs_of(jobs, ["status"])
        return [one["id"] for one in listed if one.get("status") not in ENDED]

    def jobs_of(self, jobs: Sequence[int], fields: Sequence[str]) -> Steps[list[documents.JobViewPart]]:
        """Of however many: a request has room for some of them."""
        found: list[documents.JobViewPart] = []
        for begin in range(0, len(jobs), _PAGE):
            found += yield from self.jobs({"job": jobs[begin:begin + _PAGE], "fields": fields}, None)
        return found

    def release(self, jobs: Iterable[JobRef], at: Union[datetime, timedelta, None]) -> Steps[list[int]]:
        return (yield from self.act("release", jobs, at=None if at is None else written.time_of(at, "at")))

    def update(self, jobs: Iterable[JobRef], changes: JobChanges) -> Steps[list[int]]:
        document = document_of(changes, {})
        if "gpus" in changes:
            document = document_of(changes, written.whole_gpu_part((yield from self.request(changes["gpus"]))))
        return (yield from self._change("PATCH", f"{API}/jobs", jobs, document))

    def explain(self, job_id: int) -> Steps[Explanation]:
        return explanation_of((yield from self.call("GET", f"{API}/jobs/{job_id}/explain")))

    def wait(self, job_id: int, timeout: Optional[float]) -> Steps[documents.Job]:
        """Until it has ended: nothing is asked but whether there is news."""
        deadline = Deadline(timeout)
        while True:
            page = yield from self.call("GET", f"{API}/jobs{query_of({'job': job_id, 'fields': 'status'})}",
                                        patience=deadline.left(self.patience))
            if not page["jobs"] or page["jobs"][0]["status"] in ENDED:
                return (yield from self.job(job_id))
            yield from self._news(page["revision"], job_id, deadline, f"job {job_id} has not ended")

    def changes(self, job_id: int) -> Steps[None]:
        """Gives what is known of a job, and again when that is otherwise, until it has ended. Why it waits is changed by others."""
        shown: Optional[dict[str, Any]] = None
        while True:
            page = yield from self.call("GET", f"{API}/jobs{query_of({'job': job_id, 'fields': 'status'})}")
            told = yield from self.job(job_id)
            known: dict[str, Any] = {**told, "run_time_seconds": 0}
            if known != shown:
                shown = known
                yield Give(told)
            if told["status"] in ENDED:
                return
            yield from self._news(page["revision"], None, Deadline(None), "")
            yield Pause(_BETWEEN_LOOKS)

    def _news(self, revision: int, job_id: Optional[int], deadline: Deadline, what: str) -> Steps[None]:
        """Something happened to the job (None: to any), or time passed. Of very many that wait, some look again each second."""
        deadline.check(what)
        if not _listening.acquire(blocking=False):
            yield Pause(deadline.left(_UNHEARD_LOOK))
            return
        try:
            yield from self._heard(revision, job_id, deadline, what)
        finally:
            _listening.release()

    def _heard(self, revision: int, job_id: Optional[int], deadline: Deadline, what: str) -> Steps[None]:
        patience = deadline.left(_POLL + 5)
        changes = Ask("GET", f"{API}/changes{query_of({'revision': revision, 'job': job_id})}", patience=patience)
        try:
            yield from asked(changes, deadline.left(self.patience))
        except ServerTimeout:
            deadline.check(what)
            raise

    # -- what comes piece by piece

    def follow(self, job_id: int, start: int) -> Steps[None]:
        """Gives what a job writes until it has ended."""
        waiting = Patience(self.patience)
        while True:
            try:
                target = f"{API}/jobs/{job_id}/log{query_of({'follow': True, 'from': start})}"
                opened: Opened = yield Ask("GET", target, is_stream=True)
                opened.answer.checked()
                waiting.found()
                while (piece := (yield More(opened.stream, _QUIET_LOG))) != b"":
                    if piece:
                        start += len(piece)
                        yield Give(piece)
                return
            except (Unreachable, ConnectionLost) as error:
                pause = waiting.lost(error)
            except Problem as problem:
                pause = waiting.refused(problem)
            yield pause

    def log(self, job_id: int, tail: Optional[int]) -> Steps[bytes]:
        answer = yield from asked(Ask("GET", f"{API}/jobs/{job_id}/log{query_of({'tail': tail})}"), self.patience)
        return answer.body

    def events(self, query: Mapping[str, object], after: Optional[int]) -> Steps[None]:
        """Gives what happens, each event once, over restarts of gflowd."""
        waiting = Patience(self.patience)
        follows = query.get("follow", True)
        while True:
            reader = event_stream.Reader()
            try:
                headers = {} if after is None else {"Last-Event-ID": str(after)}
                opened: Opened = yield Ask("GET", f"{API}/events{query_of(query)}", headers=headers, is_stream=True)
                opened.answer.checked()
                waiting.found()
                while piece := (yield More(opened.stream, _SILENT_STREAM)):
                    for event in reader.feed(piece):
                        yield Give(event)
                    after = after if reader.last_id is None else reader.last_id
                if not follows:
                    return
                pause = waiting.lost(ConnectionLost("gflowd ended the stream of events"))
            except (Unreachable, ConnectionLost) as error:
                pause = waiting.lost(error)
            except Problem as problem:
                pause = waiting.refused(problem)
            yield pause

    # -- GPUs

    def allocate(self, need: Mapping[str, Any], deadline: Deadline) -> Steps[documents.GpuAllocation]:
        """Where it waits, `state` says so; where it is refused, NoGpus does."""
        told: documents.GpuAllocation = yield from self.call(
            "POST", f"{API}/gpu/allocate", need, uuid.uuid4().hex, deadline.left(self.patience))
        if not told["success"] and not (need.get("wait") and told["state"] not in (None, *ENDED)):
            raise NoGpus(told["error_message"])
        return told

    def await_allocation(self, allocation: documents.GpuAllocation, deadline: Deadline) -> Steps[documents.GpuAllocation]:
        """Until its GPUs are there. Errors: WaitTimeout; NoGpus where it ended before."""
        its = allocation["allocation_id"]
        assert its is not None
        while not allocation["success"]:
            patience = deadline.left(self.patience)
            page = yield from self.call("GET", f"{API}/jobs{query_of({'job': its, 'fields': 'status'})}", patience=patience)
            allocation = yield from self.call("GET", f"{API}/gpu/allocations/{its}", patience=patience)
            if allocation["success"]:
                break
            if allocation["state"] in ENDED:
                raise NoGpus(allocation["error_message"])
            yield from self._news(page["revision"], its, deadline, f"no GPUs: {allocation['error_message']}")
        return allocation

    def give_back(self, allocation_id: int) -> Steps[None]:
        """Returns once others can have them, which takes milliseconds."""
        ask = Ask("DELETE", f"{API}/gpu/allocations/{allocation_id}", is_idempotent=True)
        try:
            yield from asked(ask, self.patience)
        except (NotFound, WrongState):
            if ask.times_sent == 1:
                raise
            return  # the one before was heard, and its answer was not
        try:
            yield from self.wait(allocation_id, _GIVING_BACK)
        except (WaitTimeout, Unreachable, ConnectionLost):
            pass  # it was told to end, and will

    def setup(self, framework: str, need: Mapping[str, Any]) -> Steps[documents.GpuAllocation]:
        """What a framework is to be told of the allocation that `need` names."""
        told: documents.GpuAllocation = yield from self.look(f"{API}/gpu/setup-{framework}", need)
        return told

    def watch(self, allocation_id: int, ttl: Optional[int]) -> Steps[None]:
        """Gives why an allocation ended, once it did; renews it while it is watched."""
        interval = _SILENT_STREAM if ttl is None else ttl / 3
        waiting = Patience(_FOR_EVER)
        while True:
            try:
                target = f"{API}/events{query_of({'job': allocation_id, 'type': 'job.ended'})}"
                opened: Opened = yield Ask("GET", target, is_stream=True)
                opened.answer.checked()
                waiting.found()
                yield from self._watch_by(opened, allocation_id, ttl, interval)
                return
            except (Unreachable, ConnectionLost, ServerTimeout) as error:
                pause = waiting.lost(error)
            except Problem as problem:
                pause = waiting.refused(problem)
            yield pause

    def _watch_by(self, opened: Opened, allocation_id: int, ttl: Optional[int], interval: float) -> Steps[None]:
        reader = event_stream.Reader()
        while True:
            told = yield from self.call("GET", f"{API}/gpu/allocations/{allocation_id}")
            if told["state"] in ENDED:
                yield Give(told["error_message"] or told["state"])
                return
            if ttl is not None:
                yield from self.call("POST", f"{API}/gpu/allocations/{allocation_id}/renew", {"ttl_seconds": ttl})
            renewal = Deadline(interval)
            while not renewal.is_over:
                piece = yield More(opened.stream, renewal.left(interval))
                if piece == b"":
                    raise ConnectionLost("gflowd ended the stream of events")
                if piece and reader.feed(piece):
                    break

    def select(self, gpus: Gpus) -> Steps[tuple[str, list[documents.MonitoredGpuShown]]]:
        """The node and its GPUs that would be given now."""
        request = yield from self.request(gpus)
        placement: documents.Placement = yield from self.look(f"{API}/place", {"request": request, "most": 1})
        if not placement["fits"] or not placement["ranked"]:
            raise NoGpus("; ".join(one["text"] for one in placement["blockers"]) or f"no room for {gpus} GPUs")
        best = placement["ranked"][0]
        monitoring: documents.GpuMonitoring = yield from self.call("GET", f"{API}/gpu/monitoring")
        there = (one for node in monitoring["nodes"] if node["node_name"] == best["node"] for one in node["gpus"])
        return best["node"], [one for one in there if one["index"] in best["gpu_indices"]]
