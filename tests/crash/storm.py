# SPDX-License-Identifier: Apache-2.0
"""A storm: two users submit, cancel, hold and change jobs while the daemon, supervisors and jobs are
killed and system calls of the daemon fail. What is true is known outside the program: each job holds
locks of its own on itself and its GPUs and writes down that it began and ended, the driver what was
acknowledged and what it killed. Run by test_storm.py, in mount and pid namespaces of its own.

    storm.py --bin DIR --work DIR --seed N --kills N [--system]
"""

import argparse
import json
import os
import random
import re
import select
import shutil
import signal
import socket
import subprocess
import threading
import time
from collections import Counter
from pathlib import Path

PATIENCE = 120  # seconds: only ever reached when something is broken
GPUS = 4
ENDED = {"Finished", "Failed", "Cancelled", "Timeout", "Lost"}

# Its own file is locked for as long as a process of it lives, and each of its GPUs: alone, or beside
# others where it has a part of it. A lock that another holds, and not a "flock" that is killed (what
# looks like a supervisor may have become a job by the time its children are), is a violation.
JOB = r"""
own=$STORM/jobs/$1${GFLOW_ARRAY_TASK_ID:+-$GFLOW_ARRAY_TASK_ID}
exec 9>>"$own"
taken=75
flock -n -E $taken 9
[ $? = $taken ] && echo "job $GFLOW_JOB_ID runs twice at once" >> "$STORM/violations"
n=10
for gpu in ${GFLOW_GPU_INDICES//,/ }; do
  eval "exec $n>>$STORM/gpus/$gpu"
  if [ "$GFLOW_GPU_MODE" = whole ]; then flock -n -E $taken -x $n; else flock -n -E $taken -s $n; fi
  [ $? = $taken ] && echo "job $GFLOW_JOB_ID has GPU $gpu, and so has another" >> "$STORM/violations"
  n=$((n + 1))
done
echo "begin $GFLOW_JOB_ID $GFLOW_ATTEMPT" >&9
sleep "$2"
echo "end $GFLOW_JOB_ID $GFLOW_ATTEMPT $3" >&9
exit "$3"
"""

# A call of the daemon, and how it fails. Each once, at a random place.
FAILURES = [
    ("fdatasync", "EIO"),
    ("pwrite64", "ENOSPC"),
    ("openat", "EMFILE"),
    ("openat", "ENFILE"),
    ("mkdir,mkdirat", "ENOSPC"),
    ("clone,clone3,vfork", "EAGAIN"),
    ("write", "ENOSPC"),
    ("pidfd_open", "EMFILE"),
    ("accept4", "EMFILE"),
    ("unlink,unlinkat,rmdir", "EIO"),
]
KILLING_CALLS = ["fdatasync", "pwrite64", "clone,clone3,vfork", "rename", "sendmsg,sendto,write", "link,linkat", "unlinkat"]


class Storm:
    def __init__(self, options):
        self.options = options
        self.rng = random.Random(options.seed)
        self.work = Path(options.work)
        self.users = [1, 2] if options.system else [os.getuid()]
        self.environment = {
            "PATH": f"{options.bin}:{os.environ['PATH']}",
            "LANG": "C.UTF-8",
            "GFLOW_API__LISTEN": "",
            "STORM": str(self.work),
            "HOME": str(self.work / "home"),
            "XDG_RUNTIME_DIR": str(self.work / "run"),
        }
        self.state = Path("/var/lib/gflow") if options.system else self.work / "home/.local/share/gflow"
        self.socket = "/run/gflow/gflowd.sock" if options.system else str(self.state / "run/gflowd.sock")
        self.config = self.work / "gflow.toml"
        self.daemon = None  # what was started: gflowd, or strace with gflowd below it
        self.lock = threading.Condition()
        self.up = False
        self.over = False
        self.operations = 0
        self.tokens = 0
        self.jobs = {}  # acknowledged: id -> what was asked
        self.asked = {}  # token -> what was asked, acknowledged or not
        self.cancels = set()  # ids that were asked to be cancelled
        self.killed_shims = set()
        self.killed_jobs = set()
        self.injected = Counter()
        self.wrong = []

    # -- the users

    def run(self, user, *command):
        """A command as this user: its exit code and what it said."""
        as_user = {"user": user, "group": user, "extra_groups": []} if self.options.system else {}
        done = subprocess.run(
            [str(part) for part in command], env=self.environment, cwd=self.work, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, errors="replace", timeout=PATIENCE, check=False, **as_user,
        )
        return done.returncode, done.stdout, done.stderr

    def submit(self, user, rng):
        with self.lock:
            self.tokens += 1
            token = f"t{self.tokens}"
        asked = {
            "token": token,
            "code": rng.choice([0, 0, 0, 3]),
            "again": rng.random() < 0.3,
            "gpus": rng.choice(["", "1", "1", "1", "2", "0.5"]),
            "tasks": rng.choice([0, 0, 0, 3]),
        }
        self.asked[token] = asked
        words = ["gbatch", "--grace", "1s"]
        if asked["gpus"]:
            words += ["--gpus", asked["gpus"]]
        if asked["again"]:
            words += ["--requeue", "--max-retries", "1"]
        if asked["tasks"]:
            words += ["--array", f"1-{asked['tasks']}"]
        if rng.random() < 0.1:
            words += ["--hold"]
        length = rng.choice([0, 0.05, 0.1, 0.3])
        code, out, _ = self.run(user, *words, "bash", self.work / "job.sh", token, length, asked["code"])
        if code != 0:
            return
        ids = []
        for first, last in re.findall(r"jobs? (\d+)(?:-(\d+))?", out):
            ids += range(int(first), int(last or first) + 1)
        assert len(ids) == max(asked["tasks"], 1), out
        with self.lock:
            for job in ids:
                assert job not in self.jobs, f"the id {job} was given twice"
                self.jobs[job] = asked | {"user": user}

    def operate(self, user, rng):
        with self.lock:
            own = [job for job, asked in list(self.jobs.items())[-60:] if asked["user"] == user]
        action = rng.choices(["submit", "cancel", "hold", "release", "update"], [12, 2, 1, 2, 1])[0]
        if action == "submit" or not own:
            return self.submit(user, rng)
        job = rng.choice(own)
        if action == "cancel":
            self.cancels.add(job)
            self.run(user, "gcancel", job)
        elif action == "update":
            self.run(user, "gjob", "update", "--priority", rng.randrange(11), job)
        else:
            self.run(user, "gjob", action, job)

    def user(self, user, seed):
        rng = random.Random(seed)
        while True:
            with self.lock:
                self.lock.wait_for(lambda: self.up or self.over)
                if self.over:
                    return
            try:
                self.operate(user, rng)
            except Exception as error:  # noqa: BLE001 - the storm has to end with the reason
                self.wrong.append(f"user {user}: {error!r}")
                self.over = True
            with self.lock:
                self.operations += 1
                self.lock.notify_all()

    # -- the daemon

    def start(self, *trace):
        """True once it answers; False if it ended instead."""
        read_end, write_end = os.pipe()
        command = [*trace, "gflowd", "--devices", f"sim:{GPUS}xH100", "--gflow-config", str(self.config),
                   "--ready-fd", str(write_end), *(["--system"] if self.options.system else [])]
        self.daemon = subprocess.Popen(
            command, env=self.environment, cwd="/", pass_fds=[write_end], stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )
        os.close(write_end)
        with os.fdopen(read_end) as said:
            line = said.readline()
        if line == "ready\n":
            with self.lock:
                self.up = True
                self.lock.notify_all()
            return True
        self.daemon.wait(PATIENCE)
        if not trace:
            self.wrong.append(f"gflowd does not start: {line}")
        return False

    def daemon_pid(self):
        try:
            return int((self.state / "gflowd.lock").read_text().split()[0])
        except (OSError, ValueError, IndexError):
            return 0

    def stop(self, number):
        """Ends it by this signal and waits until it is gone."""
        with self.lock:
            self.up = False
        pid = self.daemon.pid if self.daemon.args[0] == "gflowd" else self.daemon_pid()
        if self.daemon.poll() is None and kill(pid, number):
            self.injected["daemon killed" if number == signal.SIGKILL else "daemon stopped"] += 1
        self.daemon.wait(PATIENCE)

    def traced(self, kind):
        """strace that kills the daemon, or lets a call of it fail, at some call to come."""
        if kind == "kill":
            call, effect = self.rng.choice(KILLING_CALLS), "signal=SIGKILL"
        else:
            call, error = self.rng.choice(FAILURES)
            effect = f"error={error}"
        when = self.rng.choice([1, 2, 3, 5, 8, 13, 21, 34])
        log = self.work / "strace"
        return log, ["strace", "-qq", "-o", str(log), "-e", f"trace={call}", "-e", f"inject={call}:{effect}:when={when}"]

    # -- what is killed below it

    def shims(self):
        """Supervisors: pid, and job."""
        found = []
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if not words[0].endswith(b"gflow-shim"):
                continue
            for word in words:
                at = re.fullmatch(rb"(.*)/attempts/(\d+)\.\d+/?", word)
                if at and at.group(1).decode() == str(self.state):
                    found.append((int(entry.name), int(at.group(2))))
        return found

    def kill_below(self):
        for pid, job in self.rng.sample(shims := self.shims(), min(len(shims), self.rng.randrange(4))):
            if self.rng.random() < 0.5:
                self.killed_shims.add(job)
                self.injected["supervisor killed"] += kill(pid, signal.SIGKILL)
                continue
            for child in children(pid):
                self.killed_jobs.add(job)
                self.injected["job killed"] += kill(child, signal.SIGKILL)

    # -- the storm

    def killed(self):
        return sum(count for what, count in self.injected.items() if what.endswith("killed"))

    def wait_operations(self, count):
        """Until the users got so much done, or the daemon is gone."""
        with self.lock:
            wanted = self.operations + count
            while self.operations < wanted and self.daemon.poll() is None and not self.over:
                self.lock.wait(0.05)

    def round(self):
        kind = self.rng.choices(["plain", "kill", "fail"], [14, 1, 2])[0]
        log, trace = (None, []) if kind == "plain" else self.traced(kind)
        if log:
            log.unlink(missing_ok=True)
        if self.start(*trace):
            for _ in range(self.rng.randrange(3)):
                self.wait_operations(self.rng.randrange(3))
                self.kill_below()
            self.wait_operations(self.rng.randrange(3))
        died = self.daemon.poll() is not None
        self.stop(signal.SIGTERM if self.rng.random() < 0.08 else signal.SIGKILL)
        if kind == "kill" and died:
            self.injected["daemon at a call killed"] += 1
        if kind == "fail" and log.exists():
            self.injected["calls failed"] += log.read_text(errors="replace").count("(INJECTED)")

    def blow(self):
        (self.work / "job.sh").write_text(JOB)
        (self.work / "job.sh").chmod(0o755)
        (self.work / "violations").touch()
        # Without control groups: their names come from the state directory, which other tests have, too.
        self.config.write_text(
            "[runner]\ncgroups = false\nlaunch_backoff = '1s'\n[store]\nbackup_interval = '1s'\n"
        )
        for name in ("jobs", "gpus", "home", "run"):
            (self.work / name).mkdir(exist_ok=True)
            (self.work / name).chmod(0o777)
        for path in (self.work, self.work / "violations"):
            path.chmod(0o777)
        for gpu in range(GPUS):
            (self.work / "gpus" / str(gpu)).touch()
            (self.work / "gpus" / str(gpu)).chmod(0o666)
        threads = [threading.Thread(target=self.user, args=(user, self.rng.random())) for user in self.users]
        for thread in threads:
            thread.start()
        try:
            while self.killed() < self.options.kills and not self.wrong and not self.over:
                self.round()
        finally:
            with self.lock:
                self.over = True
                self.lock.notify_all()
            for thread in threads:
                thread.join(PATIENCE)

    # -- the calm after it

    def get(self, target):
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(PATIENCE)
            connection.connect(self.socket)
            connection.sendall(f"GET {target} HTTP/1.1\r\nHost: gflow\r\nConnection: close\r\n\r\n".encode())
            answer = b""
            while chunk := connection.recv(65536):
                answer += chunk
        return json.loads(answer.split(b"\r\n\r\n", 1)[1])

    def all_jobs(self):
        jobs, after = {}, 0
        while True:
            page = self.get(f"/api/v1/jobs?limit=500&after={after}")
            jobs |= {job["id"]: job for job in page["jobs"]}
            if not page["jobs"] or not page.get("next_after"):
                return jobs
            after = page["next_after"]

    def settle(self):
        """The daemon undisturbed, until every job has ended. What waits for a person is let go on."""
        if self.wrong or not self.start():
            return {}
        deadline = time.monotonic() + PATIENCE
        while True:
            jobs = self.all_jobs()
            left = [job for job in jobs.values() if job["status"] not in ENDED]
            if not left or time.monotonic() > deadline:
                return jobs
            for job in left:
                if job["status"] == "Hold":
                    self.run(os.getuid(), "gjob", "release", job["id"])
            self.get(f"/api/v1/changes?revision={self.get('/api/v1/jobs?limit=1')['revision']}&job={left[0]['id']}")

    def judge(self, jobs):
        """Everything that is not as it was seen outside."""
        wrong = self.wrong + (self.work / "violations").read_text().splitlines()
        if not self.wrong:
            wrong += [f"job {job} was acknowledged and is lost" for job in sorted(set(self.jobs) - set(jobs))]
            begun, ended = self.records()
            for job in jobs.values():
                wrong += self.judge_job(job, begun[job["id"]], ended.get(job["id"]))
            wrong += [f"job {job} ran, and nobody knows it" for job in sorted(set(begun) - set(jobs))]
        for what in ("daemon killed", "supervisor killed", "job killed", "calls failed"):
            if self.injected[what] == 0 and (what != "calls failed" or shutil.which("strace")):
                wrong.append(f"the storm did nothing: {what}: 0")
        return wrong

    def records(self):
        """What jobs wrote down: begun attempts, and the attempts and exit code of their end."""
        begun, ended = Counter(), {}
        self.begun_twice = []
        for path in (self.work / "jobs").iterdir():
            lines = [line.split() for line in path.read_text().splitlines()]
            starts = [(int(words[1]), int(words[2])) for words in lines if words[0] == "begin"]
            self.begun_twice += [f"attempt {start} began twice" for start, n in Counter(starts).items() if n > 1]
            for job, _ in starts:
                begun[job] += 1
            for words in lines:
                if words[0] == "end":
                    ended[int(words[1])] = (int(words[2]), int(words[3]))
        self.wrong += self.begun_twice
        return begun, ended

    def asked_of(self, job):
        return self.jobs.get(job["id"]) or self.asked[token_of(job)]

    def judge_job(self, job, begun, end):
        """A job's end against what it wrote down and what was done to it."""
        number, status, outcome = job["id"], job["status"], job.get("outcome") or {}
        said = f"job {number} is {status} ({outcome.get('reason')}, {outcome.get('exit_code')}), began {begun} times, ended {end}"
        if status not in ENDED:
            return [f"job {number} never ended: {status}"]
        asked = self.asked_of(job)
        wrong = []
        if begun > 1 and not asked["again"]:
            wrong.append(f"it was not to run again: {said}")
        if status == "Finished" and (end is None or end[1] != 0):
            wrong.append(f"it did not finish: {said}")
        if status == "Failed":
            # A supervisor that has not become the job yet looks like one.
            killed = outcome.get("reason") == "signalled" and number in self.killed_jobs | self.killed_shims
            by_itself = outcome.get("reason") == "exited" and end is not None and end[1] == outcome.get("exit_code")
            # Its "sleep" was killed and bash went on, or it was killed just as it had ended.
            by_kill = outcome.get("reason") == "exited" and number in self.killed_jobs
            if not (killed or by_itself or by_kill):
                wrong.append(f"it did not fail: {said} {outcome.get('message')}")
        if status == "Cancelled" and number not in self.cancels:
            wrong.append(f"nobody cancelled it: {said}")
        if status == "Lost" and number not in self.killed_shims:
            wrong.append(f"its supervisor was not killed: {said}")
        if status == "Timeout":
            wrong.append(f"it had no time limit: {said}")
        return wrong


def token_of(job):
    return re.search(r"\bt\d+\b", job["spec"]["command"]).group()


def kill(pid, number):
    """Signals a process; SIGKILL returns once it is gone. Whether it was there."""
    try:
        descriptor = os.pidfd_open(pid)
    except (ProcessLookupError, OSError):
        return False
    try:
        signal.pidfd_send_signal(descriptor, number)
        if number == signal.SIGKILL:
            assert select.select([descriptor], [], [], PATIENCE)[0], f"process {pid} does not die"
        return True
    except ProcessLookupError:
        return False
    finally:
        os.close(descriptor)


def children(pid):
    try:
        return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True)
    parser.add_argument("--work", required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--kills", type=int, required=True)
    parser.add_argument("--system", action="store_true")
    storm = Storm(parser.parse_args())
    started = time.monotonic()
    storm.blow()
    jobs = storm.settle()
    wrong = storm.judge(jobs)
    if storm.daemon.poll() is None:
        storm.stop(signal.SIGTERM)
    states = Counter(job["status"] for job in jobs.values())
    print(json.dumps({
        "seed": storm.options.seed,
        "seconds": round(time.monotonic() - started),
        "acknowledged": len(storm.jobs),
        "injected": storm.injected,
        "states": states,
        "wrong": sorted(set(wrong))[:20],
    }))


if __name__ == "__main__":
    main()
