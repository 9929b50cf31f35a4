# SPDX-License-Identifier: Apache-2.0
"""A machine of its own with `gflowd --system` and three users, in namespaces that end with it.

alice and bob share the group `team`; mallory is the one who means harm. Each has a home. Nothing here
sleeps: what has to happen is waited for with gflow's own commands.
"""

import json
import os
import re
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path

from machine import BIN, PATIENCE, Ran

UIDS = {"root": 0, "alice": 20001, "bob": 20002, "mallory": 20003}
TEAM = 20100
SOCKET = "/run/gflow/gflowd.sock"
STATE = "/var/lib/gflow"
CHECKOUT = Path(__file__).resolve().parents[2]
DAEMON_LOG = f"{STATE}/logs/gpu_resource_manager.log"

# Process 1 of the town: everything ends with it, and it reaps what loses its parent.
INIT = r"""
set -eu
place=$1 checkout=$2
exec 3<"$checkout"
for directory in /run /var/lib /home /root /mnt; do mount -t tmpfs none "$directory"; done
# Where that hides the checkout, which has programs that people of the town start.
if [[ ! -d $checkout ]]; then
  mkdir -p "$checkout"
  mount --no-canonicalize --bind /proc/self/fd/3 "$checkout"
fi
exec 3<&-
mount --bind "$place/passwd" /etc/passwd
mount --bind "$place/group" /etc/group
mkdir -p /run/shared
mkdir -p /etc/gflow
mount -t tmpfs none /etc/gflow
# Towns side by side would make control groups of the same names.
printf '[runner]\ncgroups = false\n' >/etc/gflow/gflow.toml
chmod 1777 /run/shared
while IFS=: read -r name _ uid gid _ home _; do
  [[ $home == /home/* ]] || continue
  mkdir "$home"
  chmod 700 "$home"
  chown "$uid:$gid" "$home"
done </etc/passwd
echo ready
read -r _ || true
"""


def talk(path, text):
    """Sends it to a socket; the whole answer."""
    answer = b""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(path)
        connection.settimeout(PATIENCE)  # not before: connect() waits for its turn
        connection.sendall(text.encode())
        while chunk := connection.recv(65536):
            answer += chunk
    return answer.decode()


class Town:
    def __init__(self):
        self.place = Path(tempfile.mkdtemp(prefix="gflow-town-"))
        os.chmod(self.place, 0o755)
        self.bin = shutil.copytree(BIN, self.place / "bin", symlinks=True)
        shutil.copy(Path(__file__).parent / "syscalls.py", self.place)
        users = {name: uid for name, uid in UIDS.items() if uid}
        accounts = [f"{name}:x:{uid}:{uid}::/home/{name}:/bin/sh\n" for name, uid in users.items()]
        groups = [f"{name}:x:{uid}:\n" for name, uid in users.items()] + [f"team:x:{TEAM}:alice,bob\n"]
        (self.place / "passwd").write_text(Path("/etc/passwd").read_text() + "".join(accounts))
        (self.place / "group").write_text(Path("/etc/group").read_text() + "".join(groups))
        self.init = subprocess.Popen(
            ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc",
             "bash", "-c", INIT, "init", self.place, CHECKOUT],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        if self.init.stdout.readline() != "ready\n":
            why = self.init.communicate()[1]
            shutil.rmtree(self.place, ignore_errors=True)
            raise OSError(why)
        children = Path(f"/proc/{self.init.pid}/task/{self.init.pid}/children").read_text().split()
        self.pid = int(children[0])

    def command(self, user, command):
        """What runs `command` as `user` in the town."""
        enter = ["nsenter", "--target", str(self.pid), "--mount", "--pid"]
        if user == "root":
            return enter + ["--"] + command
        uid = str(UIDS[user])
        become = ["setpriv", "--reuid", uid, "--regid", uid, "--init-groups"]
        return enter + ["--"] + become + command

    def environment(self, user):
        home = "/root" if user == "root" else f"/home/{user}"
        kept = {k: v for k, v in os.environ.items() if k in ("LANG", "LC_ALL", "ASAN_OPTIONS")}
        return kept | {"PATH": f"{self.bin}:{os.environ['PATH']}", "HOME": home, "USER": user, "GFLOW_API__LISTEN": ""}

    def start(self, user, *command, cwd=None, env=None, **more):
        """A program of `user` that goes on."""
        where = cwd or self.environment(user)["HOME"]
        words = ["env", f"--chdir={where}"] + [str(word) for word in command]
        return subprocess.Popen(
            self.command(user, words), env=self.environment(user) | (env or {}),
            **({"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | more),
        )

    def run(self, user, *command, input=None, **more):
        if input is not None:
            more["stdin"] = subprocess.PIPE
            input = input if isinstance(input, bytes) else input.encode()
        started = self.start(user, *command, **more)
        try:
            out, err = started.communicate(input, timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            started.kill()
            raise
        return Ran(started.returncode, out or b"", err or b"")

    def ok(self, user, *command, **more):
        ran = self.run(user, *command, **more)
        assert ran.code == 0, f"{user}: {command}: {ran}"
        return ran.out

    def up(self, *more, before=(), **options):
        """Starts the daemon; `before` is what stands before its command (umask, nice ...)."""
        return self.ok("root", *before, "gflowd", "up", "--system", "--devices", "sim:2xH100", *more, **options)

    def submit(self, user, *words, **more):
        out = self.ok(user, "gbatch", *words, **more)
        found = re.search(r"^Submitted batch job (\d+)$", out, re.MULTILINE)
        assert found, out
        return int(found.group(1))

    def script(self, user, text, *words, **more):
        """Submits a script given on standard input's place: a file in the home of its user."""
        name = more.pop("name", "job.sh")
        self.ok(user, "tee", name, input=text)
        return self.submit(user, *words, f"./{name}", **more)

    def ended(self, *jobs):
        """Their documents as root sees them, once they are over."""
        self.run("root", "gjob", "wait", *jobs)  # its code is that of the jobs
        return [self.job("root", job) for job in jobs]

    def running(self, job):
        """The job once its program runs."""
        while True:
            revision = self.get("root", "/api/v1/jobs?limit=1")["revision"]
            shown = self.job("root", job)
            assert shown["status"] in ("Queued", "Starting", "Running"), shown
            if shown["status"] == "Running" and shown["pid"]:
                return shown
            self.get("root", f"/api/v1/changes?revision={revision}&job={job}")

    def until(self, job, wanted, user="root"):
        """The job as the user sees it once `wanted(job)` is true, asked again whenever it changed."""
        while True:
            revision = self.get("root", "/api/v1/jobs?limit=1")["revision"]
            shown = self.job(user, job)
            if wanted(shown):
                return shown
            self.get("root", f"/api/v1/changes?revision={revision}&job={job}")

    def gone(self, job):
        """The job once it is over, without a command that would have to be written down."""
        return self.until(job, lambda shown: shown["ended"])

    def job(self, user, job):
        return self.get(user, f"/api/v1/jobs/{job}")

    def get(self, user, target):
        status, body = self.ask(user, "GET", target)
        assert status == 200, body
        return json.loads(body)

    def ask(self, user, method, target, body="", headers=""):
        """Any request of a user, as text: status and body."""
        text = (f"{method} {target} HTTP/1.1\r\nHost: gflow\r\nConnection: close\r\n{headers}"
                f"Content-Length: {len(body.encode())}\r\n\r\n{body}")
        if user == "root":
            out = talk(f"/proc/{self.pid}/root{SOCKET}", text)
        else:
            out = self.ok(user, "python3", self.place / "syscalls.py", "talk", SOCKET, input=text)
        head, _, rest = out.partition("\r\n\r\n")
        return int(head.split()[1]), rest

    def python(self, user, *words, **more):
        """One of the small programs in syscalls.py."""
        return self.run(user, "python3", self.place / "syscalls.py", *words, **more)

    def log(self, job):
        return self.ok("root", "cat", f"{STATE}/logs/{job}.log")

    def stat(self, path):
        """"owner:group mode" in numbers."""
        return self.ok("root", "stat", "-c", "%u:%g %a", path).strip()

    def close(self):
        self.init.kill()  # the namespace goes with it (--kill-child)
        self.init.communicate()
        shutil.rmtree(self.place, ignore_errors=True)
