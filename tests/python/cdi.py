# SPDX-License-Identifier: Apache-2.0
"""CDI specification files as container runtimes read them: what the name of a device stands for in a container.

A file that is wrong in anything is as good as none, as it is for those; what is wrong with it is told beside.
"""

import dataclasses
import json
import os
import re
import stat
from pathlib import Path

_VERSIONS = ("0.3.0", "0.4.0", "0.5.0", "0.6.0", "0.7.0", "0.8.0", "1.0.0", "1.1.0")
_KIND = re.compile(r"[A-Za-z]([\w.-]*[A-Za-z0-9])?/[A-Za-z]([\w.-]*[A-Za-z0-9])?", re.ASCII)
_NAME = re.compile(r"[A-Za-z0-9]([\w.:-]*[A-Za-z0-9])?", re.ASCII)
_FIELDS = {
    "specification": {"cdiVersion", "kind", "annotations", "devices", "containerEdits"},
    "device": {"name", "annotations", "containerEdits"},
    "edits": {"env", "deviceNodes", "mounts", "hooks", "netDevices", "intelRdt", "additionalGids"},
    "device node": {"path", "hostPath", "type", "major", "minor", "fileMode", "permissions", "uid", "gid"},
    "mount": {"hostPath", "containerPath", "options", "type"},
}


class Unresolvable(Exception):
    """A container with these devices is not made."""


@dataclasses.dataclass
class Edits:
    """What is changed in a container: device nodes and mounts by their paths there, of which the last is meant."""

    environment: dict = dataclasses.field(default_factory=dict)
    nodes: dict = dataclasses.field(default_factory=dict)
    mounts: dict = dataclasses.field(default_factory=dict)

    def add(self, said):
        for one in said.get("env", ()):
            name, _, value = one.partition("=")
            self.environment[name] = value
        for one in said.get("deviceNodes", ()):
            self.nodes[one["path"]] = device_node(one["path"], one.get("hostPath", one["path"]), one)
        for one in said.get("mounts", ()):
            options = one.get("options", ())
            if "bind" not in options and "rbind" not in options:
                raise Unresolvable(f"no file system is of type {one.get('type', '')!r}, and no option says that {one['hostPath']} is to be bound")
            self.mounts[one["containerPath"]] = {"source": one["hostPath"], "target": one["containerPath"], "options": options}


def device_node(path, of, said=None):
    """A device node as it is made at that path: what is not said of it is as that of the host."""
    said = said or {}
    if "type" not in said or "major" not in said:
        of_host = os.stat(of)
        if not stat.S_ISCHR(of_host.st_mode) and not stat.S_ISBLK(of_host.st_mode):
            raise Unresolvable(f"{of} is not a device node")
        kind = "c" if stat.S_ISCHR(of_host.st_mode) else "b"
        said = {"type": kind, "major": os.major(of_host.st_rdev), "minor": os.minor(of_host.st_rdev), "fileMode": stat.S_IMODE(of_host.st_mode), **said}
    return {"path": path, "type": said["type"], "major": said["major"], "minor": said.get("minor", 0), "mode": said.get("fileMode", 0o666),
            "user": said.get("uid", 0), "group": said.get("gid", 0)}


def resolve(names, directories):
    """What they stand for together, in files of the last of the directories that has them. Errors: Unresolvable."""
    known, faults = _devices(directories)
    unknown = [name for name in names if known.get(name) is None]
    if unknown:
        raise Unresolvable("; ".join([f"unresolvable CDI devices {', '.join(unknown)}", *faults]))
    edits, specifications = Edits(), []
    for name in names:
        specification, device = known[name]
        if specification not in specifications:
            specifications.append(specification)
            edits.add(specification.get("containerEdits", {}))
        edits.add(device["containerEdits"])
    return edits


def _devices(directories):
    """The specification and the device of each name, None where two files of a directory have it; and what is wrong with files."""
    known, faults = {}, []
    for directory in directories:
        here = {}
        for path in sorted(Path(directory).glob("*.json")):
            try:
                specification = _read(path)
            except (OSError, ValueError) as error:
                faults.append(f"{path}: {error}")
                continue
            for device in specification["devices"]:
                name = f"{specification['kind']}={device['name']}"
                if name in here:
                    faults.append(f"{path}: {name} is in another file, too")
                here[name] = None if name in here else (specification, device)
        known |= here
    return known, faults


def _read(path):
    said = json.loads(path.read_text())
    _known("specification", said)
    if said.get("cdiVersion") not in _VERSIONS:
        raise ValueError(f"no version of CDI: {said.get('cdiVersion')!r}")
    if not _KIND.fullmatch(said.get("kind", "")):
        raise ValueError(f"no kind of devices: {said.get('kind')!r}")
    if not said.get("devices"):
        raise ValueError("no devices")
    _check_edits(said.get("containerEdits", {}))
    names = [device.get("name", "") for device in said["devices"]]
    for device in said["devices"]:
        _known("device", device)
        if not _NAME.fullmatch(device.get("name", "")) or names.count(device["name"]) > 1:
            raise ValueError(f"no name of a device, or one of two: {device.get('name')!r}")
        if not device.get("containerEdits"):
            raise ValueError(f"{device['name']} changes nothing")
        _check_edits(device["containerEdits"])
    if _VERSIONS.index(said["cdiVersion"]) < _VERSIONS.index(_least_version(said)):
        raise ValueError(f"what it says needs at least version {_least_version(said)}")
    return said


def _check_edits(edits):
    _known("edits", edits)
    unheard_of = edits.keys() & {"hooks", "netDevices", "intelRdt", "additionalGids"}
    if unheard_of:
        raise ValueError(f"containers of tests have no {', '.join(unheard_of)}")
    for one in edits.get("env", ()):
        if one.find("=") < 1:
            raise ValueError(f"no variable: {one!r}")
    for kind, several, needed in (("device node", "deviceNodes", {"path"}), ("mount", "mounts", {"hostPath", "containerPath"})):
        for one in edits.get(several, ()):
            _known(kind, one)
            if not all(one.get(name) for name in needed):
                raise ValueError(f"{kind} without {', '.join(sorted(needed))}")


def _known(kind, said):
    if said.keys() - _FIELDS[kind]:
        raise ValueError(f"no field of a {kind}: {', '.join(said.keys() - _FIELDS[kind])}")


def _least_version(said):
    """In which all was there that it says."""
    edits = [said.get("containerEdits", {}), *(device["containerEdits"] for device in said["devices"])]
    if "annotations" in said or "." in said["kind"].partition("/")[2] or any("annotations" in device for device in said["devices"]):
        return "0.6.0"
    if any("hostPath" in node for one in edits for node in one.get("deviceNodes", ())) or any(device["name"][0].isdigit() for device in said["devices"]):
        return "0.5.0"
    return "0.4.0" if any("type" in mount for one in edits for mount in one.get("mounts", ())) else "0.3.0"
