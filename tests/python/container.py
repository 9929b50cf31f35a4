# SPDX-License-Identifier: Apache-2.0
"""A container of container_runtime.py: what it is, its process and its log."""

import datetime
import json
import os
import selectors
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
PIECE = 16384  # bytes of a line of the log, as the format has it


class Container:
    def __init__(self, folder, sandbox, config, log, edits):
        """`log` is where kubelet wants it; `edits` is what its devices change."""
        self.folder, self.sandbox, self.config, self.log = folder, sandbox, config, log
        self.id = folder.name
        self.made, self.started, self.finished, self.exit_code = time.time_ns(), 0, 0, 0
        self._process = None
        self._over = threading.Event()
        folder.mkdir()
        (folder / "process.json").write_text(json.dumps(_process_of(config, edits)))

    @property
    def is_running(self):
        return self.started > 0 and not self._over.is_set()

    @property
    def is_over(self):
        return self._over.is_set()

    def start(self):
        """Errors: OSError, where its command cannot be run."""
        self.open_log()
        reading, told = os.pipe()
        self._process = subprocess.Popen(
            [sys.executable, "-I", Path(__file__).with_name("container_process.py"), self.folder, str(told)], pass_fds=[told],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
        os.close(told)
        with open(reading, encoding="utf-8") as answer:
            fault = answer.read()
        self.started = time.time_ns()
        threading.Thread(target=self._follow, daemon=True).start()
        if fault:
            self._over.wait()
            raise OSError(fault)

    def _follow(self):
        """Its output goes to the log, of which a line says when and where from. It ends when all that wrote to it have."""
        rest = {"stdout": b"", "stderr": b""}
        with selectors.DefaultSelector() as streams:
            for name in rest:
                streams.register(getattr(self._process, name), selectors.EVENT_READ, name)
            while streams.get_map():
                for key, _ in streams.select():
                    got = os.read(key.fd, PIECE)
                    *lines, rest[key.data] = (rest[key.data] + got).split(b"\n")
                    for line in lines:
                        self._write(key.data, "F", line)
                    if rest[key.data] and (not got or len(rest[key.data]) >= PIECE):
                        self._write(key.data, "P", rest[key.data])
                        rest[key.data] = b""
                    if not got:
                        streams.unregister(key.fileobj)
        ended = self._process.wait()
        self.exit_code = ended if ended >= 0 else 128 - ended
        self.finished = time.time_ns()
        self._over.set()

    def open_log(self):
        """It is there from the start, and again when kubelet moved it aside."""
        self.log.parent.mkdir(parents=True, exist_ok=True)
        self.log.touch()

    def _write(self, stream, tag, line):
        when = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="microseconds").replace("+00:00", "000Z")
        with open(self.log, "ab") as log:
            log.write(f"{when} {stream} {tag} ".encode() + line + b"\n")

    def stop(self, seconds=0):
        """Asked first where it is given time."""
        if not self.is_running:
            return
        if seconds > 0:
            self._process.terminate()
            self._over.wait(seconds)
        if self.is_running:
            self._process.kill()  # and the kernel those of its namespace
            self._over.wait()

    def run(self, command, seconds):
        """Another command in it, its output and its exit code; None where it took too long."""
        words = ["nsenter", "--mount", "--pid", "--root", "--wd", f"--target={(self.folder / 'pid').read_text()}", "--", *command]
        try:
            return subprocess.run(words, capture_output=True, timeout=seconds or None, check=False)
        except subprocess.TimeoutExpired:
            return None

    def remove(self):
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)


def _process_of(config, edits):
    """What container_process.py starts."""
    said = config.linux.security_context
    environment = {"PATH": PATH} | {one.key: one.value.decode() for one in config.envs} | edits.environment
    mounts = {one.container_path: {"source": one.host_path, "target": one.container_path, "options": ["ro"] if one.readonly else []}
              for one in config.mounts} | edits.mounts
    return {
        "command": [*config.command, *config.args], "environment": environment, "directory": config.working_dir or "/",
        "mounts": sorted(mounts.values(), key=lambda one: one["target"].rstrip("/").count("/")),  # one may be within another
        "nodes": list(edits.nodes.values()), "user": said.run_as_user.value, "group": said.run_as_group.value, "groups": list(said.supplemental_groups)}
