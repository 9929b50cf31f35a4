# SPDX-License-Identifier: Apache-2.0
"""Which gflowd is meant: found as the commands find it, and `gctl remote` keeps those of other machines."""

from __future__ import annotations

import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Optional
from urllib.parse import urlsplit

from gflow.errors import ConfigurationError

_SYSTEM_SOCKET = "/run/gflow/gflowd.sock"
_LONGEST_SOCKET_PATH = 107
_REMOTE_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}")


@dataclass(frozen=True)
class Server:
    """Where it is, and as whom to ask. Exactly one of `socket` and `host` is set."""

    socket: str = ""
    host: str = ""
    port: int = 0
    fingerprint: str = ""
    """Of its certificate; the connection is TLS if there is one."""
    token: str = ""

    @property
    def is_here(self) -> bool:
        """Whether our processes and files are those of its machine: a port may be forwarded."""
        return bool(self.socket)

    @property
    def authority(self) -> str:
        """The Host header."""
        if self.socket:
            return "gflow"
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def url(self) -> str:
        """By which find_server() finds it again, with what is kept of it: the token is not in it."""
        return f"unix:{self.socket}" if self.socket else str(self)

    def __str__(self) -> str:
        return self.socket or f"{'https' if self.fingerprint else 'http'}://{self.authority}"


def find_server(server: Optional[str] = None, token: Optional[str] = None, fingerprint: Optional[str] = None) -> Server:
    """By its URL (unix:/path, http://127.0.0.1:8000, https://lab1:8443) or the name it has for `gctl remote`; without
    one by GFLOW_SERVER, else that of this machine."""
    named = server or os.environ.get("GFLOW_SERVER", "")
    if named.startswith("unix:"):
        return Server(socket=named.removeprefix("unix:").removeprefix("//"), token=token or "")
    if named.startswith("http://"):
        return _on_loopback(Server(*_place_of(named, 8000), token=token or ""))
    if named:
        return _remote(named, token, fingerprint)
    return Server(socket=client_socket(), token=token or "")


def _on_loopback(server: Server) -> Server:
    """Itself: what is not TLS, a token above all, does not leave this machine."""
    import ipaddress

    try:
        is_here = ipaddress.ip_address(server.host).is_loopback
    except ValueError:
        is_here = server.host.lower() == "localhost"
    if not is_here:
        raise ConfigurationError(f"'{server}' is another machine, which is asked over TLS only: 'gctl remote add NAME "
                                 f"https://{server.host}:8443' first")
    return server


def _place_of(url: str, port: int) -> tuple[str, str, int]:
    """Of a URL: no socket, host, port."""
    try:
        parts = urlsplit(url)
        if parts.hostname and parts.path in ("", "/") and not parts.query and not parts.username:
            return "", parts.hostname, parts.port or port
    except ValueError:
        pass
    raise ConfigurationError(f"'{url}' is not the URL of a gflowd, as https://lab1:8443")


def config_directory() -> Path:
    return _base_directory("XDG_CONFIG_HOME", ".config") / "gflow"


def data_directory() -> Path:
    return _base_directory("XDG_DATA_HOME", ".local/share") / "gflow"


def _base_directory(variable: str, below_home: str) -> Path:
    value = os.environ.get(variable, "")
    return Path(value) if value.startswith("/") else Path.home() / below_home


def _remote(named: str, token: Optional[str], fingerprint: Optional[str]) -> Server:
    if named.startswith("https://"):
        _, host, port = _place_of(named, 8443)
        if fingerprint:
            return Server("", host, port, fingerprint, token or "")
        for name in _remote_names():
            kept = _read_remote(name)
            if (kept.host, kept.port) == (host, port):
                return Server("", host, port, kept.fingerprint, token or kept.token)
    elif _REMOTE_NAME.fullmatch(named) and (config_directory() / "remotes" / named).exists():
        kept = _read_remote(named)
        return Server("", kept.host, kept.port, fingerprint or kept.fingerprint, token or kept.token)
    raise ConfigurationError(f"'{named}' is not known here: 'gctl remote add NAME https://HOST:PORT' first")


def _remote_names() -> list[str]:
    try:
        return sorted(name for name in os.listdir(config_directory() / "remotes") if _REMOTE_NAME.fullmatch(name))
    except FileNotFoundError:
        return []


def _read_remote(name: str) -> Server:
    path = config_directory() / "remotes" / name
    if path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise ConfigurationError(
            f"others can read '{path}', which holds a token: chmod 600 it, and revoke the token if they did")
    lines = (line.partition(" ") for line in path.read_text().splitlines())
    kept = {key: value for key, _, value in lines}
    if "url" not in kept or "fingerprint" not in kept:
        raise ConfigurationError(f"'{path}' is not as 'gctl remote add' writes it: remove it and add it again")
    return Server(*_place_of(kept["url"], 8443), kept["fingerprint"], kept.get("token", ""))


def client_socket() -> str:
    """That of this user's gflowd, or that of the machine's where they have none."""
    if named := os.environ.get("GFLOW_SOCKET", ""):
        return named
    if named := _socket_of_config():
        return named
    own = _own_socket()
    if os.path.exists(_SYSTEM_SOCKET) and (not os.path.exists(own) or not _is_served(own)):
        return _SYSTEM_SOCKET
    return own


def _own_socket() -> str:
    """As its lock says, else the usual one."""
    state = data_directory()
    try:
        lines = (state / "gflowd.lock").read_text().splitlines()
        if len(lines) > 1 and os.path.exists(lines[1]):
            return lines[1]
    except (OSError, UnicodeDecodeError):
        pass
    usual = str(state / "run/gflowd.sock")
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    if len(os.fsencode(usual)) > _LONGEST_SOCKET_PATH and runtime.startswith("/"):
        return f"{runtime}/gflow/gflowd.sock"
    return usual


def _is_served(path: str) -> bool:
    import socket

    with socket.socket(socket.AF_UNIX) as one:
        one.settimeout(1)
        try:
            one.connect(path)
        except BlockingIOError:
            return True  # it has so much to do that we would have to wait
        except OSError:
            return False
    return True


def _socket_of_config() -> str:
    named = os.environ.get("GFLOW_CONFIG", "")
    path = Path(named) if named else config_directory() / "gflow.toml"
    if not path.is_file():
        if named:
            raise ConfigurationError(f"GFLOW_CONFIG: there is no file '{named}'")
        return ""
    toml = _toml()
    try:
        told = toml.loads(path.read_text(encoding="utf-8")).get("daemon", {})
    except ValueError as wrong:
        raise ConfigurationError(f"{path}: {wrong}; 'gctl config check' has all of it") from wrong
    return str(told.get("socket", "")) if isinstance(told, dict) else ""


def _toml() -> Any:
    """tomllib, which Python has from 3.11 on."""
    import importlib

    try:
        return importlib.import_module("tomllib")
    except ModuleNotFoundError:
        return importlib.import_module("tomli")
