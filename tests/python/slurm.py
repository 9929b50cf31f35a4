# SPDX-License-Identifier: Apache-2.0
"""A Slurm of a test: munged, slurmctld and slurmds as Debian packages them, in a directory and on ports of their own. Its GPUs are files
that are devices of no driver. Nothing of the machine is changed."""

import contextlib
import os
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path

from machine import PATIENCE
from pypi import missing

PROGRAMS = ("munged", "mungekey", "slurmctld", "slurmd", "sbatch", "squeue", "scontrol", "scancel", "sinfo")
CPUS = 16
GPUS = 4
SHARDS_OF_GPU = 10


def programs():
    """Not there: skipped, and a failure where everything has to run."""
    path = os.environ["PATH"] + ":/usr/sbin:/usr/local/sbin"
    lacking = [name for name in PROGRAMS if shutil.which(name, path=path) is None]
    if lacking:
        missing(f"Slurm is not installed ({', '.join(lacking)}; ./dev setup)")
    if os.geteuid() != 0:
        missing("Slurm starts jobs of users as root, and this is not root")
    if not os.path.ismount("/sys/fs/cgroup"):
        missing("slurmd needs control groups: no file system is mounted on /sys/fs/cgroup")
    return path


def free_ports(count):
    """Slurm shares no port with who would keep it for it."""
    with contextlib.ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


class Slurm:
    def __init__(self, models=("v100", "v100", "a100")):
        path = programs()
        self.root = Path(tempfile.mkdtemp(prefix="gflow-slurm-"))
        self.root.chmod(0o755)
        self._running = []
        self._ports = free_ports(1 + len(models))
        self.nodes = {f"n{i}": model for i, model in enumerate(models, 1)}
        self.environment = os.environ | {"PATH": path, "SLURM_CONF": str(self.root / "slurm.conf"), "HOME": str(self.root), "TZ": "UTC"}
        self.work = self.root / "work"
        self.work.mkdir()
        self._make_devices()
        self._write_configuration()

    def start(self):
        key, where = self.root / "munge.key", self.root / "munge"
        where.mkdir(mode=0o755)
        subprocess.run(["mungekey", "--create", "--keyfile", key], check=True, env=self.environment)
        self._start("munged", "--foreground", "--force", f"--key-file={key}", f"--socket={where}/socket", f"--pid-file={where}/pid",
                    f"--log-file={where}/log", f"--seed-file={where}/seed")
        self.until(lambda: (where / "socket").exists(), "munged")
        self._start("slurmctld", "-D", "-i")
        for name in self.nodes:
            self._start("slurmd", "-D", "-N", name)
        self.until(lambda: sorted(self.ok("sinfo", "-h", "-N", "-t", "idle", "-o", "%N").split()) == sorted(self.nodes), "nodes")

    def ok(self, *words, **options):
        done = self.run(*words, **options)
        assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
        return done.stdout

    def run(self, *words, **options):
        return subprocess.run([str(word) for word in words], env=self.environment, cwd=self.work, capture_output=True, text=True,
                              timeout=PATIENCE, check=False, **options)

    def until(self, true, what):
        """Looks again until it is so. What these programs do is told nowhere else."""
        end = time.monotonic() + PATIENCE
        while not self._is(true):
            assert time.monotonic() < end, f"{what}: not in time\n{self.logs()}"
            dead = [process.args[0] for process in self._running if process.poll() is not None]
            assert not dead, f"{dead} ended\n{self.logs()}"
            time.sleep(0.05)

    def _is(self, true):
        try:
            return true()
        except AssertionError:
            return False

    def logs(self):
        return "\n".join(f"{file.name}: {file.read_text(errors='replace')[-1500:]}" for file in self.root.glob("*.log"))

    def close(self):
        with contextlib.suppress(AssertionError, subprocess.TimeoutExpired):
            self.run("scancel", "--state=PENDING")
            self.run("scancel", "--signal=KILL", "--full")
        for process in reversed(self._running):
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        shutil.rmtree(self.root, ignore_errors=True)

    def _start(self, *words):
        log = (self.root / f"{words[0]}{words[-1] if words[0] == 'slurmd' else ''}.out.log").open("w")
        with log:
            self._running.append(subprocess.Popen(words, env=self.environment, stdout=log, stderr=log, start_new_session=True))

    def _make_devices(self):
        """slurmd tells a job which it has only of what are devices: of a number that NVIDIA has, without its driver."""
        devices = self.root / "dev"
        devices.mkdir()
        for index in range(GPUS):
            os.mknod(devices / f"nvidia{index}", 0o600 | 0o020000, os.makedev(195, index))

    def _write_configuration(self):
        host = socket.gethostname().split(".")[0]
        port, *of_nodes = self._ports
        nodes = "\n".join(
            f"NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={at} CPUs={CPUS} RealMemory=64000 "
            f"Gres=gpu:{model}:{GPUS},shard:{GPUS * SHARDS_OF_GPU}"
            for (name, model), at in zip(self.nodes.items(), of_nodes, strict=True))
        (self.root / "state").mkdir()
        (self.root / "slurm.conf").write_text(f"""ClusterName=lab
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={self.root}/munge/socket
StateSaveLocation={self.root}/state
SlurmdSpoolDir={self.root}/spool-%n
SlurmctldPidFile={self.root}/slurmctld.pid
SlurmdPidFile={self.root}/slurmd-%n.pid
SlurmctldLogFile={self.root}/slurmctld.log
SlurmdLogFile={self.root}/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SwitchType=switch/none
ReturnToService=2
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
DefMemPerCPU=10
GresTypes=gpu,shard
SlurmdParameters=config_overrides
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=1,bf_interval=1
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
KillWait=2
{nodes}
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
""")
        (self.root / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\n")
        lines = [f"NodeName={name} Name=gpu Type={model} File={self.root}/dev/nvidia[0-{GPUS - 1}]\n"
                 f"NodeName={name} Name=shard Count={GPUS * SHARDS_OF_GPU}\n" for name, model in self.nodes.items()]
        (self.root / "gres.conf").write_text("".join(lines))
