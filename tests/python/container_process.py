# SPDX-License-Identifier: Apache-2.0
"""The first process of a container, and its parent: container_process.py FOLDER TOLD.

FOLDER/process.json says what it is. The parent makes the namespaces, leaves the process's id in FOLDER/pid, passes SIGTERM on
and ends as it does. Why it could not be started is written to the descriptor TOLD, which is closed when it was.
"""

import ctypes
import json
import os
import signal
import stat
import sys
from pathlib import Path

CLONE_NEWNS = 0x00020000
CLONE_NEWPID = 0x20000000
MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = 1 << 5, 1 << 12, 1 << 14, 1 << 18
OPTIONS = {"ro": 1, "nosuid": 1 << 1, "nodev": 1 << 2, "noexec": 1 << 3}
PR_SET_PDEATHSIG = 1
DEVICES = (("null", 3), ("zero", 5), ("full", 7), ("random", 8), ("urandom", 9))  # the number of each among those of memory

library = ctypes.CDLL(None, use_errno=True)


def called(result, what):
    if result != 0:
        raise OSError(ctypes.get_errno(), f"{what}: {os.strerror(ctypes.get_errno())}")


def end_with_parent():
    called(library.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0), "prctl")


def mount(source, target, kind="", flags=0, options=""):
    words = [str(one).encode() for one in (source, target, kind)]
    called(library.mount(*words, ctypes.c_ulong(flags), options.encode()), f"mount {source} at {target}")


def make_root(folder):
    """The host's own files, which the container can change for itself."""
    for name in ("root", "upper", "work"):
        (folder / name).mkdir()
    mount("none", "/", flags=MS_REC | MS_PRIVATE)
    mount("overlay", folder / "root", "overlay", options=f"lowerdir=/,upperdir={folder}/upper,workdir={folder}/work")
    mount("/sys", folder / "root/sys", flags=MS_BIND | MS_REC)
    return folder / "root"


def make_file_systems():
    """What it has of its own."""
    mount("proc", "/proc", "proc")
    mount("tmpfs", "/dev", "tmpfs", options="mode=755")
    os.mkdir("/dev/shm")
    mount("tmpfs", "/dev/shm", "tmpfs", options="mode=1777")
    os.symlink("/proc/self/fd", "/dev/fd")
    for name, number in DEVICES:
        make_node({"path": f"/dev/{name}", "type": "c", "major": 1, "minor": number, "mode": 0o666, "user": 0, "group": 0})


def make_node(node):
    path = Path(node["path"])
    path.parent.mkdir(parents=True, exist_ok=True)
    os.mknod(path, stat.S_IFBLK if node["type"] == "b" else stat.S_IFCHR, os.makedev(node["major"], node["minor"]))
    os.chown(path, node["user"], node["group"])
    os.chmod(path, node["mode"])


def bind(source, one):
    """What that descriptor is open for."""
    target = Path(one["target"])
    if stat.S_ISDIR(os.fstat(source).st_mode):
        target.mkdir(parents=True, exist_ok=True)
    else:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.touch()
    mount(f"/proc/self/fd/{source}", target, flags=MS_BIND | MS_REC)
    flags = sum(flag for name, flag in OPTIONS.items() if name in one["options"])
    if flags:
        mount("none", target, flags=MS_REMOUNT | MS_BIND | flags)


def become(folder, process):
    """Returns only by an exception. Links are followed as the container sees them."""
    end_with_parent()
    sources = [os.open(one["source"], os.O_PATH | os.O_CLOEXEC) for one in process["mounts"]]
    os.chroot(make_root(folder))
    os.chdir("/")
    make_file_systems()
    for source, one in zip(sources, process["mounts"]):
        bind(source, one)
    for node in process["nodes"]:
        make_node(node)
    os.umask(0o022)
    for ignored_by_python in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(ignored_by_python, signal.SIG_DFL)
    os.chdir(process["directory"])
    os.setgroups(process["groups"])
    os.setgid(process["group"])
    os.setuid(process["user"])
    os.execvpe(process["command"][0], process["command"], process["environment"])


def main(folder, told):
    os.set_inheritable(told, False)
    end_with_parent()
    called(library.unshare(CLONE_NEWNS | CLONE_NEWPID), "unshare")
    first = os.fork()
    if first == 0:
        try:
            become(folder, json.loads((folder / "process.json").read_text()))
        except OSError as error:
            os.write(told, str(error).encode())
        os._exit(128)
    signal.signal(signal.SIGTERM, lambda *_: os.kill(first, signal.SIGTERM))
    (folder / "pid").write_text(str(first))
    for descriptor in (told, 1, 2):
        os.close(descriptor)
    ended = os.waitstatus_to_exitcode(os.waitpid(first, 0)[1])
    os._exit(ended if ended >= 0 else 128 - ended)


main(Path(sys.argv[1]), int(sys.argv[2]))
