# SPDX-License-Identifier: Apache-2.0
"""A JupyterHub whose notebooks are jobs: `c.JupyterHub.spawner_class = "gflow.jupyterhub.GflowSpawner"`."""

from __future__ import annotations

import asyncio
import html
import importlib
import os
import pwd
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Optional, TypeVar, cast

from gflow._calls import ENDED
from gflow._html import reasons_of
from gflow.aio import AsyncClient, AsyncJob
from gflow.errors import ConfigurationError, ConnectionLost, GflowError, NotFound, ServerTimeout, Unavailable, Unreachable, WrongState
from gflow.submission import given_of

if TYPE_CHECKING:
    from gflow.submission import SubmitOptions

# None of them is typed.
_apihandlers: Any = importlib.import_module("jupyterhub.apihandlers")
_Spawner: Any = importlib.import_module("jupyterhub.spawner").Spawner
traits: Any = importlib.import_module("traitlets")
web: Any = importlib.import_module("tornado.web")
_T = TypeVar("_T")
_FAILED = 1
_AWAY = (Unreachable, ConnectionLost, ServerTimeout, Unavailable)
_PAUSE = 1.0


class PlaceHandler(_apihandlers.APIHandler):  # type: ignore[misc]
    """POST /hub/api/gflow: where the server of a job will listen, told with its own token."""

    @web.authenticated  # type: ignore[untyped-decorator]
    def post(self) -> None:
        told = self.get_json_body() or {}
        token = self.get_auth_token()
        spawners = getattr(self.current_user, "spawners", {})  # a service has none
        mine = [one for one in spawners.values() if isinstance(one, GflowSpawner) and one.api_token == token]
        port = told.get("port")
        if not mine or not isinstance(port, int) or not 0 < port < 65536:
            raise web.HTTPError(403 if not mine else 400, "that is for the server of a job, which tells its port")
        if not mine[0].note_place(str(told.get("host", "")), port):
            raise web.HTTPError(409, "this server is not waited for any more")
        self.set_status(204)


_apihandlers.default_handlers.append((r"/api/gflow", PlaceHandler))


class GflowSpawner(_Spawner):  # type: ignore[misc]
    """Each server is a job: it waits in the queue, is seen in gqueue, and holds its GPUs until it is stopped."""

    gflowd = traits.Unicode("", config=True, help="Which gflowd: a name or URL of 'gctl remote'; empty: that of this machine.")
    token = traits.Any(
        "", config=True,
        help="The token of gflowd to submit with, or a function of the spawner that gives that of its user, asked each time; who it has none "
             "for gets no server. With tokens gflowd is a URL, as none is looked at on its socket. Without, jobs are those of the account the "
             "hub runs as.")
    profiles: Any = traits.List(
        [{"name": "No GPU", "options": {"cpus": 1}}, {"name": "One GPU", "options": {"gpus": 1}}], config=True,
        help="What a user may choose: a name, and the options of gflow.submit(). The first is chosen where nothing is said.")
    address = traits.Unicode("127.0.0.1", config=True, help="Where the hub finds servers; empty: by the name of the machine of each.")
    start_timeout = traits.Integer(3600, config=True, help="Seconds a server may wait for its GPUs and start.")

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.job_id = 0
        self._client: Optional[AsyncClient] = None
        self._token_of_client: Optional[str] = None
        self._place: Optional[asyncio.Future[tuple[str, int]]] = None
        self._has_job = asyncio.Event()
        self._is_unheard = False

    # -- what a user may choose

    def _options_form_default(self) -> str:
        if len(self.profiles) < 2:
            return ""
        rows = "".join(f'<option value="{place}">{html.escape(one["name"])}</option>' for place, one in enumerate(self.profiles))
        return f'<label for="profile">Resources</label><select class="form-control" id="profile" name="profile">{rows}</select>'

    def options_from_form(self, form: Mapping[str, list[str]]) -> dict[str, Any]:
        return {"profile": form.get("profile", ["0"])[0]}

    def _profile(self) -> dict[str, Any]:
        """By its place or its name."""
        wanted = str(self.user_options.get("profile", "0"))
        for place, one in enumerate(self.profiles):
            if wanted in (str(place), one["name"]):
                return cast("dict[str, Any]", one)
        raise web.HTTPError(400, f"there is no profile '{wanted}'; there are: {', '.join(one['name'] for one in self.profiles)}")

    # -- the job

    @property
    def client(self) -> AsyncClient:
        """That asks as this user, by `token` as it is now.

        Errors: ConfigurationError where it would ask as another."""
        token = self._token_now()
        if self._client is None or self._token_of_client != token:
            made = AsyncClient(self.gflowd or None, token=token)
            if token is not None and made.server.socket:
                raise ConfigurationError("on a socket gflowd looks at no token, and takes this for the hub: set c.GflowSpawner.gflowd = "
                                         "'http://127.0.0.1:8000'")
            if self._client is not None:
                self._client._driver.close()  # what is asked by it now goes on
            self._client, self._token_of_client = made, token
        return self._client

    def _token_now(self) -> Optional[str]:
        """None: the hub's account is meant, which for others is never root."""
        if callable(self.token):
            return self._token_by_function()
        if self.token:
            return str(self.token)
        if os.geteuid() == 0 and self.user.name != pwd.getpwuid(0).pw_name:
            raise ConfigurationError("the hub runs as root, and so would this server: set c.GflowSpawner.token, or run the hub as another account")
        return None

    def _token_by_function(self) -> str:
        why = ""
        try:
            token = self.token(self)
        except Exception as error:
            token, why = None, f": {error!r}"
        if not isinstance(token, str) or not token.strip():
            raise ConfigurationError(f"c.GflowSpawner.token has none for '{self.user.name}'{why}")
        return token

    @property
    def job(self) -> AsyncJob:
        """The user's server."""
        return AsyncJob(self.client, self.job_id, f"jupyter-{self.user.name}")

    def _options(self) -> SubmitOptions:
        """What the hub itself has in its environment is not for users."""
        given = {"name": f"jupyter-{self.user.name}", **given_of(self._profile().get("options", {}))}
        environment = {**self.get_env(), **given.get("env", {})}
        if self.notebook_dir:
            given.setdefault("cwd", os.path.expanduser(self.format_string(self.notebook_dir)))
        given.setdefault("cwd", os.path.expanduser("~"))
        return cast("SubmitOptions", {**given, "env": environment, "inherit_env": False})

    async def start(self) -> tuple[str, int]:
        try:
            client = self.client
        except ConfigurationError as error:
            raise web.HTTPError(500, str(error)) from error
        self._place = asyncio.get_running_loop().create_future()
        command = [sys.executable, "-m", "gflow._singleuser", *self.cmd, *self.get_args()]
        try:
            job = await client.submit(command, **self._options())
        except GflowError as error:
            raise web.HTTPError(500, f"gflow takes no such job: {error}") from error
        self.job_id = job.id
        self._has_job.set()
        self.orm_spawner.state = self.get_state()  # should this hub be killed, the next one knows of it
        self.db.commit()
        self.log.info("gflow: job %d is the server of %s", job.id, self.user.name)
        try:
            return await self._started(job)
        except asyncio.CancelledError:  # the hub does not want it any more
            await asyncio.shield(self.stop(now=True))
            raise

    async def _started(self, job: AsyncJob) -> tuple[str, int]:
        assert self._place is not None
        ended = asyncio.ensure_future(self._when_there(lambda: self.job.wait()))
        await asyncio.wait([cast("asyncio.Future[Any]", self._place), ended], return_when=asyncio.FIRST_COMPLETED)
        if self._place.done():
            ended.cancel()
            return self._place.result()
        told = ended.result()
        log = await self._when_there(lambda: self.job.log(tail=20)) if told["started"] is not None else ""
        raise web.HTTPError(500, f"the server did not start: job {job.id} {told['status']} {reasons_of(told)}\n{log}")

    async def _when_there(self, ask: Callable[[], Awaitable[_T]]) -> _T:
        """What gflowd answers, once it is there: a hub outlives one that is away for longer than a client is patient."""
        is_told = False
        while True:
            try:
                return await ask()
            except _AWAY as error:
                if not is_told:
                    self.log.warning("gflow: job %d is asked for again until gflowd answers: %s", self.job_id, error)
                is_told = True
            await asyncio.sleep(_PAUSE)

    def note_place(self, host: str, port: int) -> bool:
        """Where the server said it listens; False where nobody waits for it, or it said otherwise before."""
        if self._place is None:
            return False
        place = (self.address or host, port)
        if not self._place.done():
            self._place.set_result(place)
        return self._place.result() == place

    async def poll(self) -> Optional[int]:
        """None while it waits or runs."""
        if not self.job_id:
            return 0
        if self._is_unheard:  # it would take GPUs for nobody
            await self.stop(now=True)
            return _FAILED
        try:
            told = await self.job.show()
        except NotFound:
            return 0
        except GflowError as error:
            self.log.warning("gflow: whether job %d runs is not known: %s", self.job_id, error)
            return None
        if told["status"] not in ENDED:
            return None
        outcome = told["outcome"]
        return outcome["exit_code"] if outcome is not None and outcome["reason"] == "exited" else _FAILED

    async def stop(self, now: bool = False) -> None:
        """Its GPUs are another's once this returns."""
        if not self.job_id:
            return
        try:
            await self._when_there(lambda: self.job.cancel(signal=9 if now else 0))
        except (WrongState, NotFound):
            return  # it has ended
        await self._when_there(lambda: self.job.wait())

    async def progress(self) -> AsyncIterator[dict[str, Any]]:
        """Why it waits, as that changes."""
        await self._has_job.wait()
        while True:
            try:
                async with self.job.changes() as changes:
                    async for told in changes:
                        if told["status"] not in ENDED:
                            yield _told_of(told)
                        if told["started"] is not None or told["status"] in ENDED:
                            return
            except _AWAY as error:
                yield {"progress": 20, "message": f"gflowd is waited for: {error}"}
            await asyncio.sleep(_PAUSE)

    # -- over restarts of the hub

    def get_state(self) -> dict[str, Any]:
        state: dict[str, Any] = super().get_state()
        if not self.job_id:
            return state
        is_heard = self._place is None or self._place.done()
        return {**state, "job_id": self.job_id, "is_heard": is_heard and not self._is_unheard}

    def load_state(self, state: dict[str, Any]) -> None:
        super().load_state(state)
        self.job_id = state.get("job_id", 0)
        self._is_unheard = not state.get("is_heard", True)  # by the hub that waited for it, which is gone

    def clear_state(self) -> None:
        super().clear_state()
        self.job_id = 0
        self._has_job.clear()
        self._is_unheard = False


def _told_of(told: Mapping[str, Any]) -> dict[str, Any]:
    """A job, as the waiting page has it."""
    if told["started"] is None:
        why = reasons_of(told)
        return {"progress": 20, "message": f"Job {told['id']} waits: {why}" if why else f"Job {told['id']} {told['status']}"}
    where = ",".join(str(one) for one in told["gpu_indices"])
    return {"progress": 70, "message": f"Job {told['id']} runs" + (f" on GPU {where}" if where else "")}


__all__ = ["GflowSpawner"]
