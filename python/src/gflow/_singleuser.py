# SPDX-License-Identifier: Apache-2.0
"""What a job of a JupyterHub user runs: python -m gflow._singleuser COMMAND... . Tells the hub where it will listen, then
becomes the command."""

from __future__ import annotations

import json
import os
import socket
import sys
import urllib.request
from urllib.parse import urlsplit

_PATIENCE = 30


def own_port() -> int:
    """One that no other job was given, which has no need to be looked for."""
    given = os.environ.get("GFLOW_PORT_BASE")
    if given:
        return int(given)
    with socket.socket() as probe:
        probe.bind(("", 0))
        port: int = probe.getsockname()[1]
        return port


def tell_the_hub(port: int) -> None:
    request = urllib.request.Request(
        os.environ["JUPYTERHUB_API_URL"] + "/gflow", json.dumps({"port": port, "host": socket.gethostname()}).encode(),
        {"Authorization": f"token {os.environ['JUPYTERHUB_API_TOKEN']}", "Content-Type": "application/json"})
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # a token goes through nobody else
    with direct.open(request, timeout=_PATIENCE):
        pass


def main(command: list[str]) -> None:
    port = own_port()
    url = urlsplit(os.environ["JUPYTERHUB_SERVICE_URL"])
    host = f"[{url.hostname}]" if ":" in (url.hostname or "") else url.hostname
    os.environ["JUPYTERHUB_SERVICE_URL"] = url._replace(netloc=f"{host}:{port}").geturl()
    tell_the_hub(port)
    os.execvp(command[0], command)


if __name__ == "__main__":
    main(sys.argv[1:])
