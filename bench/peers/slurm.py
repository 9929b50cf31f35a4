# SPDX-License-Identifier: Apache-2.0
"""Slurm: a controller, one node that is said to have 8 CPUs, and munge, all of them private to a directory."""

import os
import shutil
import socket
from pathlib import Path

from .processes import Daemon, call, output, pause, run, small_environment, until, wait

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue")

CONFIGURATION = """\
ClusterName=bench
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmctldPort={controller}
SlurmdPort={node}
AuthType=auth/munge
AuthInfo=socket={root}/munge.socket
CryptoType=crypto/munge
StateSaveLocation={root}/state
SlurmdSpoolDir={root}/spool
SlurmctldPidFile={root}/slurmctld.pid
SlurmdPidFile={root}/slurmd.pid
SlurmctldLogFile={root}/slurmctld.log
SlurmdLogFile={root}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
ReturnToService=2
MaxJobCount=50000
MaxArraySize=20000
NodeName={host} NodeAddr=127.0.0.1 CPUs=8 State=UNKNOWN
PartitionName=all Nodes={host} Default=YES MaxTime=INFINITE State=UP OverSubscribe=NO
"""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def why_missing():
    absent = [program for program in PROGRAMS if not shutil.which(program, path=f"{os.environ['PATH']}:/usr/sbin")]
    if absent:
        return f"not installed: {', '.join(absent)} (bench/peers/install.sh)"
    return None if os.geteuid() == 0 else "its node runs jobs of users only as root"


class Slurm:
    name = "Slurm"
    missing = why_missing()

    def __init__(self, root):
        self.root = root
        self.host = socket.gethostname().split(".")[0]
        self.environment = small_environment(root) | {"SLURM_CONF": str(root / "slurm.conf"), "PATH": f"{os.environ['PATH']}:/usr/sbin"}
        root.chmod(0o755)  # munged wants its directories to be so
        for name in ("state", "spool"):
            (root / name).mkdir()
        (root / "slurm.conf").write_text(CONFIGURATION.format(host=self.host, root=root, controller=free_port(), node=free_port()))
        key = root / "munge.key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o400)
        self.munge = Daemon(
            ["/usr/sbin/munged", "-F", f"--key-file={key}", f"--socket={root}/munge.socket", f"--pid-file={root}/munged.pid",
             f"--log-file={root}/munged.log", f"--seed-file={root}/munged.seed", "--force"], self.environment, root / "munged.out")
        until((root / "munge.socket").exists, "the socket of munged")
        self.start()
        self.node = Daemon(["/usr/sbin/slurmd", "-D", "-N", self.host], self.environment, root / "slurmd.out")
        until(self.is_ready, "an idle node of Slurm")

    def start(self):
        self.controller = Daemon(["/usr/sbin/slurmctld", "-D"], self.environment, self.root / "slurmctld.out")
        until(lambda: call(["squeue"], self.environment), "an answer of slurmctld")

    def is_ready(self):
        return "idle" in output(["sinfo", "-h", "-o", "%T"], self.environment)

    def kill9(self):
        self.controller.kill9()

    def submit(self, command, gpus=1):
        return ["sbatch", "-Q", "-o", "/dev/null", "-D", "/", "-n1", "-c", str(gpus), "--wrap", command]

    def held(self):
        return ["sbatch", "-Q", "-o", "/dev/null", "-D", "/", "--hold", "--wrap", "true"]

    def known(self):
        return len(output(["squeue", "-h", "-r", "-o", "%i"], self.environment).split())

    def array(self, count, command, gpus=1, hold=False):
        return [*self.submit(" ".join(command), gpus), "--array", f"1-{count}", *(["--hold"] if hold else [])]

    def chain(self, count, command):
        wait(run(self.array(count, [command], gpus=8), self.environment))

    def many(self, count):
        wait(run(self.array(count, ["true"]), self.environment))
        until(lambda: self.known() == 0, f"the end of {count} jobs of Slurm", 1800)

    def close(self):
        call(["scancel", "-u", "root"], self.environment)
        pause(2)  # its node ends what it runs
        for daemon in (self.controller, self.node, self.munge):
            daemon.end()
