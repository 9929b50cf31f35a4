# SPDX-License-Identifier: Apache-2.0
"""Which Kubernetes cluster is meant, and who asks there: a context of a kubeconfig file, or the service account of a pod."""

from __future__ import annotations

import importlib
import json
import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, Optional, Union
from urllib.parse import urlsplit

from gflow.errors import ConfigurationError, OptionError

_WRITTEN = re.compile(r"[\x21-\x7e]+( [\x21-\x7e]+)*")  # what a header may have
_MOST_SHOWN = 500


def printable(text: object) -> str:
    """What others wrote, for a line of a log: cut, and without what a terminal would obey."""
    said = str(text)
    cut = f"{said[:_MOST_SHOWN]}..." if len(said) > _MOST_SHOWN else said
    return "".join(c if c.isprintable() else c.encode("unicode_escape", "backslashreplace").decode() for c in cut)


def imported() -> Any:
    """The package of PyPI. Errors: ConfigurationError."""
    try:
        import kubernetes.client
        import kubernetes.client.rest
        import kubernetes.config
        import kubernetes.utils.quantity
    except ImportError as error:
        raise ConfigurationError(f"this needs the Python package of Kubernetes: pip install 'gflow[kubernetes]' ({error})") from error
    return kubernetes


def _unclear(why: object, way_out: str = "see `kubectl config view`") -> ConfigurationError:
    return ConfigurationError(f"which Kubernetes cluster is meant cannot be told: {printable(why)}; {way_out}")


Loader = Callable[[Any, Callable[[], float]], None]
"""Fills a Configuration of the package, in so many seconds."""


def meant(context: Optional[str], kubeconfig: Union[str, os.PathLike[str], None]) -> Loader:
    """By a kubeconfig file, where one is named or there, else by the service account of the pod this runs in. It is read once: which cluster
    it is does not change with the file; what the file points to is read by each call. Errors: ConfigurationError, OptionError."""
    imported()
    if context is not None and not isinstance(context, str):
        raise OptionError(f"context={context!r} is not the name of a context")
    if kubeconfig is not None and not isinstance(kubeconfig, (str, os.PathLike)):
        raise OptionError(f"kubeconfig={kubeconfig!r} is not a file")
    named = os.fspath(kubeconfig) if kubeconfig else os.environ.get("KUBECONFIG", "").strip(os.pathsep)
    if not named:
        try:
            default = Path.home() / ".kube/config"
            named = str(default) if context or default.exists() else ""
        except (RuntimeError, OSError):  # no home: as in containers
            if context:
                raise _unclear(f"there is no home directory that has context {context!r}", "name a file with KUBECONFIG") from None
    return _of_file(str(named), context) if named else _in_pod


def _in_pod(configuration: Any, seconds: Callable[[], float]) -> None:
    package = imported()
    try:
        package.config.load_incluster_config(client_configuration=configuration)
    except (package.config.ConfigException, OSError, ValueError) as error:
        raise _unclear(error, "this is no pod, and there is no ~/.kube/config: name a file with KUBECONFIG") from None


def _of_file(path: str, context: Optional[str]) -> Loader:
    kube_config: Any = importlib.import_module("kubernetes.config.kube_config")
    if not any(Path(one).expanduser().exists() for one in path.split(os.pathsep) if one):
        raise _unclear(f"there is no file {path}", "kubeconfig= or KUBECONFIG names it")
    try:
        merged = kube_config.KubeConfigMerger(path).config
        chosen = context or merged["current-context"]
    except Exception as error:  # it raises what YAML and files do, too
        raise _unclear(f"{path}: {_without_text(error)}") from None

    def load(configuration: Any, seconds: Callable[[], float]) -> None:
        try:
            loader = _loader(seconds)(config_dict=merged, config_base_path=None, active_context=chosen)
            loader.load_and_set(configuration)
        except ConfigurationError:
            raise
        except Exception as error:
            raise _unclear(f"{path}: {_without_text(error)}") from None

    return load


def _without_text(error: Exception) -> str:
    """What is wrong with a file; YAML would show its lines, which may have secrets."""
    mark = getattr(error, "problem_mark", None)
    return f"line {mark.line + 1} is not YAML" if mark is not None else str(error) or type(error).__name__


def _loader(seconds: Callable[[], float]) -> Any:
    """The package's own, which lets a program for credentials run for ever, and goes on without credentials where it fails."""
    kube_config: Any = importlib.import_module("kubernetes.config.kube_config")
    exec_provider: Any = importlib.import_module("kubernetes.config.exec_provider")

    class Loader(kube_config.KubeConfigLoader):  # type: ignore[misc]
        def _load_from_exec_plugin(self) -> Optional[bool]:
            if "exec" not in self._user:
                return None
            base = self._get_base_path(self._cluster.path)
            provider = exec_provider.ExecProvider(self._user["exec"], base)
            spec: dict[str, Any] = {"interactive": False}
            if self._user["exec"].safe_get("provideClusterInfo"):
                spec["cluster"] = _told_of(self._cluster.value)
            status = _credentials(provider, spec, seconds())
            if status.get("token"):
                self.token = f"Bearer {status['token']}"
            elif status.get("clientCertificateData") and status.get("clientKeyData"):
                self.cert_file, self.key_file = (kube_config.FileOrData(
                    status, None, data_key_name=name, file_base_path=base, base64_file_content=False).as_file()
                    for name in ("clientCertificateData", "clientKeyData"))
            else:
                raise _of_program(provider, "it tells neither a token nor a certificate and its key")
            if status.get("expirationTimestamp"):
                self.expiry = kube_config.parse_rfc3339(status["expirationTimestamp"])
            return True

    return Loader


def _told_of(cluster: dict[str, Any]) -> dict[str, Any]:
    own = next((one for one in cluster.get("extensions") or () if one.get("name") == "client.authentication.k8s.io/exec"), None)
    return {**cluster, "config": own["extension"]} if own else dict(cluster)


def _of_program(provider: Any, why: str) -> ConfigurationError:
    """Without anything that it wrote, which may be a secret."""
    return ConfigurationError(
        f"the kubeconfig file's program for credentials, {printable(provider.args[0])}, is of no use: {why}; try `kubectl auth whoami`")


def _credentials(provider: Any, spec: dict[str, Any], seconds: float) -> dict[str, Any]:
    """What the program answers. Errors: ConfigurationError."""
    info = {"apiVersion": provider.api_version, "kind": "ExecCredential", "spec": spec}
    try:
        done = subprocess.run(
            provider.args, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=provider.cwd, timeout=seconds,
            env={**provider.env, "KUBERNETES_EXEC_INFO": json.dumps(info)}, check=False)
    except subprocess.TimeoutExpired:
        raise _of_program(provider, f"it did not answer in {seconds:.0f} s") from None
    except (OSError, TypeError, ValueError) as error:
        raise _of_program(provider, str(getattr(error, "strerror", "") or type(error).__name__)) from None
    if done.returncode != 0:
        raise _of_program(provider, f"it ended with exit code {done.returncode}")
    try:
        told = json.loads(done.stdout)
        status = told["status"]
    except (KeyError, TypeError, ValueError, RecursionError):
        raise _of_program(provider, "it answers no ExecCredential") from None
    if told.get("apiVersion") != provider.api_version or not isinstance(status, dict):
        raise _of_program(provider, f"it answers no ExecCredential of {printable(provider.api_version)}")
    return status


def host_of(configuration: Any) -> str:
    """Of the API server, without a password. Errors: ConfigurationError."""
    host = str(configuration.host)
    try:
        read = urlsplit(host)
        if read.scheme not in ("http", "https") or not read.hostname:
            raise ValueError
        port = read.port
    except ValueError:
        raise _unclear(f"server {host.rpartition('@')[2]!r} is not the URL of an API server, as https://10.0.0.1:6443") from None
    name = f"[{read.hostname}]" if ":" in read.hostname else read.hostname
    return f"{read.scheme}://{name}{'' if port is None else f':{port}'}{read.path.rstrip('/')}"


def authorization(configuration: Any) -> dict[str, str]:
    """The headers that say who asks. Errors: ConfigurationError, which has none of it."""
    try:
        told = [(str(one["key"]), str(one["value"])) for one in configuration.auth_settings().values() if one.get("value")]
    except ConfigurationError:
        raise
    except Exception as error:  # a file that is gone, a program that failed
        raise ConfigurationError(f"the credentials for Kubernetes cannot be read: {type(error).__name__}; try `kubectl auth whoami`") from None
    headers = {}
    for name, value in told:
        kind, _, secret = value.strip().partition(" ")
        headers[name] = f"{kind} {secret.strip()}".strip()
        if not _WRITTEN.fullmatch(headers[name]):
            raise ConfigurationError("the token for Kubernetes has characters that no token has: see its file, or the kubeconfig file") from None
    return headers
