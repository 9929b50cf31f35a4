# SPDX-License-Identifier: Apache-2.0
"""What gbatch and its companions take beyond the document: sweeps, holds, waits, formats, exit codes."""

import json
import os
import re
import signal
import socketserver
import threading
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest
from machine import Gate
from relay import Relay


def test_stdin_is_a_script(machine):
    out = machine.ok("gbatch", "-", input="#!/bin/bash\n# GFLOW --name piped\necho from stdin\n")
    job = int(out.split()[-1])
    ended = machine.wait(job)[0]
    assert ended["spec"]["name"] == "piped" and machine.log(job) == "from stdin\n"


def test_flags_win_over_directives(machine):
    (machine.work / "job.sh").write_text("#!/bin/bash\n# GFLOW --gpus 1 --priority=3\necho $GFLOW_GPUS\n")
    job = machine.submit("--gpus", "2", "job.sh")
    ended = machine.wait(job)[0]
    assert machine.log(job) == "2\n" and ended["spec"]["priority"] == 3


def test_sbatch_lines_are_read_and_what_is_ignored_is_said(machine):
    (machine.work / "slurm.sh").write_text(
        "#!/bin/bash\n#SBATCH --gres=gpu:1\n#SBATCH --time=1-00:00:00\n#SBATCH --mail-type=ALL\necho ok\n"
    )
    ran = machine.run("gbatch", "slurm.sh")
    assert ran.code == 0 and "--mail-type" in ran.err and re.fullmatch(r"Submitted batch job \d+\n", ran.out)
    job = machine.wait(int(ran.out.split()[-1]))[0]
    assert job["spec"]["request"]["gpus"] == 1 and job["spec"]["time_limit_seconds"] == 86400


def test_arrays_and_their_limit(machine):
    out = machine.ok("gbatch", "--array", "1-6", "--max-concurrent", "2", "bash", "-c", "echo $GFLOW_ARRAY_TASK_ID")
    jobs = [int(n) for n in re.findall(r"job (\d+)", out)]
    assert len(jobs) == 6
    machine.wait(*jobs)
    assert [machine.log(job) for job in jobs] == [f"{n}\n" for n in range(1, 7)]


def test_parameters_only_where_they_were_given(machine):
    out = machine.ok("gbatch", "--param", "lr=0.1,0.2", "--name-template", "run_{lr}", "echo", "{lr}", "{other}", "${HOME}")
    jobs = [int(n) for n in re.findall(r"job (\d+)", out)]
    ended = machine.wait(*jobs)
    assert [machine.log(job) for job in jobs] == ["0.1 {other} ${HOME}\n", "0.2 {other} ${HOME}\n"]
    assert [job["spec"]["name"] for job in ended] == ["run_0.1", "run_0.2"]


def test_wait_passes_the_exit_code_on(machine):
    assert machine.run("gbatch", "--wait", "bash", "-c", "exit 42").code == 42
    job = machine.submit("bash", "-c", "exit 3")
    assert machine.run("gjob", "wait", job).code == 3
    assert machine.run("gjob", "wait", machine.submit("true")).code == 0


def test_who_waits_for_many_asks_for_each_a_few_times(machine):
    """It used to ask for all of them whenever anything had changed: at ten thousand jobs most of what the machine did."""
    relay = Relay(machine)
    out = machine.ok("gbatch", "--gpus", "2", "--array", "1-40", "sh", "-c", "exit $((GFLOW_ARRAY_TASK_ID % 3))")
    first = int(re.search(r"(\d+)", out)[1])
    assert machine.run("gjob", "wait", f"{first}-{first + 39}", env={"GFLOW_SOCKET": relay.path}).code == 2
    listings = [target for target in relay.asked if target.startswith("/api/v1/jobs")]
    assert 1 <= len(listings) <= 10, relay.asked


def test_wait_gives_up_after_its_time(machine):
    gate = Gate(machine)
    job = machine.submit("bash", "-c", gate.command)
    gate.reached()
    assert machine.run("gjob", "wait", "--timeout", "1s", job).code == 8
    gate.open()


def test_killed_by_a_signal(machine):
    job = machine.submit("bash", "-c", "kill -USR1 $$")
    ended = machine.wait(job)[0]
    assert ended["outcome"]["reason"] == "signalled" and ended["outcome"]["signal"] == signal.SIGUSR1


def test_hold_release_and_last_job(machine):
    machine.submit("--hold", "true")
    second = machine.submit("--hold", "true")
    assert "(JobHeldUser)" in machine.ok("gqueue")
    machine.ok("gjob", "release", "@")
    assert machine.wait(second)[0]["status"] == "Finished"
    machine.ok("gjob", "release", "@~1")
    machine.wait(second - 1)


def test_man_pages_of_every_program(machine):
    for name in ("gflow", "gflowd", "gbatch", "gctl", "gflow-kube", "gflow-lab", "gflow-spec", "gflow-doctor", "gflow.toml"):
        page = machine.ok("gflow", "man", name)
        assert page.startswith(".TH") or ".TH" in page[:200], page[:200]
        assert f"{name} " in page.replace("\\-", "-")
    assert machine.ok("gflow", "man", "lab") == machine.ok("gflow", "man", "gflow-lab")


def test_begin_time(machine):
    job = machine.submit("--begin", "now+1s", "true")
    assert machine.wait(job)[0]["status"] == "Finished"
    later = machine.submit("--begin", "now+2h", "true")
    assert "(BeginTime" in machine.ok("gqueue", "-j", later)


def test_cancel_gracefully_then_hard(machine):
    gate = Gate(machine)
    polite = machine.submit("bash", "-c", f"trap 'echo bye; exit 0' TERM; {gate.command}")
    gate.reached()
    machine.ok("gcancel", polite)
    assert machine.wait(polite)[0]["status"] == "Cancelled"
    assert machine.log(polite) == "bye\n"
    stubborn = machine.submit("--grace", "1s", "bash", "-c", f"trap '' TERM; {gate.command}; {gate.command}")
    gate.reached()
    machine.ok("gcancel", stubborn)
    ended = machine.wait(stubborn)[0]
    assert ended["status"] == "Cancelled" and ended["outcome"]["signal"] in (0, signal.SIGKILL)


def test_a_signal_cancels_nothing(machine):
    """Every process of the job gets it, and only jobs that run do."""
    gate = Gate(machine)
    (machine.work / "job.py").write_text(f"""
import os, signal
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
child = os.fork()
if child:
    open({str(gate.there)!r}, "w").close()
signal.sigwait([signal.SIGUSR1])
print("parent" if child else "child", flush=True)
if child:
    os.wait()
os._exit(3)
""")
    job = machine.submit("python3", machine.work / "job.py")
    waiting = machine.submit("--hold", "true")
    gate.reached()
    machine.running(job)
    refused = machine.run("gcancel", "--signal", "USR1", waiting)
    assert refused.code == 6 and "only a running job can be sent a signal" in refused.err, refused
    assert "would be sent SIGUSR1" in machine.ok("gcancel", "--dry-run", "--signal", "usr1", job)
    assert machine.ok("gcancel", "--me", "-S", "USR1") == f"Sent SIGUSR1 to job {job}.\n"
    ended = machine.wait(job)[0]
    assert ended["status"] == "Failed" and ended["outcome"]["exit_code"] == 3
    assert sorted(machine.log(job).split()) == ["child", "parent"]
    assert machine.job(waiting)["status"] == "Hold"


def test_a_filter_that_names_nothing_cancels_nothing(machine):
    """It is the variable of a script that was not set."""
    job = machine.submit("--hold", "true")
    for words in (["-u", ""], ["--group", ""], ["--names", " "], ["-s", ","], ["--me", "--group", ""]):
        ran = machine.run("gcancel", *words)
        assert ran.code == 2 and "names nothing" in ran.err, ran
    assert machine.job(job)["status"] == "Hold"
    ran = machine.run("gctl", "drain", "node", "")
    assert ran.code == 2 and "the name of the node is empty" in ran.err, ran


def test_what_would_be_cancelled_is_there_for_programs(machine):
    first = machine.submit("--hold", "true")
    after = machine.submit("--hold", "-d", first, "true")
    other = machine.submit("--hold", "true")
    machine.ok("gcancel", other)
    assert json.loads(machine.ok("gcancel", "--dry-run", "--json", first))["jobs"] == [first, after]
    ran = machine.run("gcancel", "--dry-run", "--json", first, 99)
    assert ran.code == 3 and json.loads(ran.out)["jobs"] == [first, after], ran
    assert json.loads(machine.ok("gcancel", "--dry-run", "--json", other))["jobs"] == []


def test_cancel_by_state_of_everyone(machine):
    """As in gqueue 'all' is everyone, and no user of that name."""
    gate = Gate(machine)
    job = machine.submit("bash", "-c", gate.command)
    gate.reached()
    machine.running(job)
    assert "no job matches" in machine.run("gcancel", "--states", "Running", "-u", "nobody-of-that-name").err
    machine.ok("gcancel", "--states", "Running", "-u", "all")
    assert machine.wait(job)[0]["status"] == "Cancelled"


def test_time_limit(machine):
    gate = Gate(machine)
    job = machine.submit("--time", "1s", "--grace", "1s", "bash", "-c", gate.command)
    ended = machine.wait(job)[0]
    assert ended["status"] == "Timeout" and ended["outcome"]["reason"] == "time_limit"
    assert "TO" in machine.ok("gqueue", "-j", job, "-a")
    assert machine.ok("gjob", "show", job).count("limit after ") == 1
    assert " after " not in machine.ok("gjob", "show", job).split("limit after ")[1].splitlines()[0]


def test_background_processes_end_with_the_job(machine):
    job = machine.submit("--gpus", "1", "--grace", "1s", "bash", "-c", "setsid sleep 1000 & echo $!")
    machine.wait(job)
    pid = int(machine.log(job))
    with pytest.raises(ProcessLookupError):
        signal.pidfd_send_signal(__import__("os").pidfd_open(pid), 0)


def test_retries(machine):
    count = machine.work / "count"
    job = machine.submit("--max-retries", "2", "bash", "-c", f"echo x >> {count}; exit 1")
    ended = machine.wait(job)[0]
    assert ended["status"] == "Failed" and ended["attempt"] == 3 and count.read_text() == "x\nx\nx\n"


def test_failure_cascades_unless_told_not_to(machine):
    first = machine.submit("--hold", "false")
    second = machine.submit("--depends-on", first, "true")
    third = machine.submit("--depends-on", second, "true")
    kept = machine.submit("--depends-on", first, "--no-auto-cancel", "true")
    machine.ok("gjob", "release", first)
    ended = machine.wait(first, second, third)
    assert [job["status"] for job in ended] == ["Failed", "Cancelled", "Cancelled"]
    assert machine.job(kept)["status"] == "Queued"
    assert "DependencyNeverSatisfied" in machine.ok("gqueue", "-j", kept)


def test_tree_shows_what_hangs_on_what(machine):
    first = machine.submit("--hold", "--name", "prep", "true")
    machine.submit("--depends-on", first, "--name", "train", "true")
    tree = machine.ok("gqueue", "-t")
    assert re.search(r"╰─\s*2\s+train", tree) and tree.splitlines()[1].startswith("1")


def test_json_is_one_versioned_document(machine):
    machine.wait(machine.submit("true"))
    for command, kind in (
        (["gqueue", "-a", "--json"], "JobPage"),
        (["ginfo", "--json"], "Machine"),
        (["gjob", "show", "1", "--json"], "Job"),
        (["gflowd", "status", "--json"], "Daemon"),
    ):
        document = json.loads(machine.ok(*command))
        assert document["apiVersion"] == "gflow/v1" and document["kind"] == kind


def test_what_prints_no_document_refuses_json(machine):
    machine.wait(machine.submit("true"))
    for command in (["gjob", "log", "1", "--json"], ["gjob", "--json", "log", "1"], ["gbatch", "new", "train", "--json"]):
        ran = machine.run(*command)
        assert (ran.code, ran.out) == (2, "") and "--json is not available" in ran.err, ran
    assert "--json" not in machine.ok("gjob", "log", "--help")
    for command in (["gctl", "--json"], ["gctl", "remote", "--json"], ["gflowd", "--json"]):
        ran = machine.run(*command)
        assert (ran.code, ran.out) == (2, ""), ran
    assert json.loads(machine.ok("gcancel", "--me", "--json"))["jobs"] == []


def test_a_daemon_that_goes_is_told_as_json(machine):
    said = json.loads(machine.ok("gflowd", "up", "--json"))
    assert said["kind"] == "Daemon"
    assert json.loads(machine.ok("gflowd", "reload", "--json"))["kind"] == "Daemon"
    gate = Gate(machine)
    machine.submit("bash", "-c", gate.command)
    gate.reached()
    down = json.loads(machine.ok("gflowd", "down", "--json"))
    assert (down["kind"], down["status"], down["pid"], down["running_jobs"]) == ("DaemonStatus", "not_running", None, 1)
    assert (down["state_dir"], down["socket"]) == (said["state_dir"], said["socket"])
    ran = machine.run("gflowd", "status", "--json")
    status = json.loads(ran.out)
    assert ran.code == 4 and (status["kind"], status["status"], status["running_jobs"]) == ("DaemonStatus", "not_running", None)
    assert status["state_dir"] == said["state_dir"] and status["log_path"] == said["log_path"]
    assert json.loads(machine.ok("gflowd", "up", "--json"))["pid"] != said["pid"]
    assert json.loads(machine.ok("gflowd", "restart", "--json"))["kind"] == "Daemon"
    gate.open()


def test_why_names_the_holder(machine):
    gate = Gate(machine)
    first = machine.submit("--gpus", "2", "--time", "1:00:00", "bash", "-c", gate.command)
    gate.reached()
    job = machine.submit("--gpus", "1", "true")
    text = machine.ok("gjob", "why", job)
    assert "Resources" in text and f"job {first}" in text and "0,1" in text
    gate.open()


def test_log_follows_until_the_end(machine):
    gate = Gate(machine)
    job = machine.submit("bash", "-c", f"echo first; {gate.command}; echo last")
    gate.reached()
    gate.open()
    assert machine.ok("gjob", "log", "-f", job) == "first\nlast\n"


def test_idempotent_submission(machine):
    """A client that never saw the answer repeats its request and gets the same job; another request
    under the key is refused, also after a restart."""
    import http.client
    import socket

    class Connection(http.client.HTTPConnection):
        def connect(self):
            self.sock = socket.socket(socket.AF_UNIX)
            self.sock.connect(str(machine.socket))

    def submit(name, key="k1"):
        body = {"items": [{"spec": {"name": name, "work_dir": "/"}, "payload": {"argv": ["true"], "environment": []}}]}
        connection = Connection("gflow")
        headers = {"Idempotency-Key": key, "Content-Type": "application/json"}
        connection.request("POST", "/api/v1/jobs", json.dumps(body), headers)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())

    first = submit("once")
    assert first[0] == 201
    for _ in range(2):
        again = submit("once")
        assert again[0] == 201 and again[1]["items"][0]["id"] == first[1]["items"][0]["id"]
        status, refused = submit("other")
        assert (status, refused["code"]) == (422, "key_reused"), refused
        assert "Idempotency-Key" in refused["detail"], refused
        machine.down()
        machine.up()
    assert submit("other", "k2")[0] == 201
    assert len(machine.get("/api/v1/jobs")["jobs"]) == 2


def test_jobs_keep_the_usual_limit_of_open_files(machine):
    import resource

    job = machine.submit("bash", "-c", "ulimit -n")
    machine.wait(job)
    assert int(machine.log(job)) == resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def test_daemon_verbs(bare):
    assert bare.run("gflowd", "status").code == 4
    assert "gflowd is up" in bare.up()
    assert "already running" in bare.up()
    assert "Status: Running" in bare.ok("gflowd", "status")
    assert Path(f"/proc/{bare.daemon_pid()}/comm").read_text() == "gflowd\n", "ps -C and pgrep go by it"
    other = bare.run("gflowd", "up", "--devices", "none")
    assert other.code == 6 and "gflowd restart" in other.err
    bare.ok("gflowd", "restart", "--devices", "sim:3xH100")
    assert "Total GPUs: 3" in bare.ok("ginfo")
    bare.ok("gflowd", "reload")
    assert bare.down() == "gflowd is down\n"
    assert bare.run("gflowd", "down").code == 4


def test_up_time_is_not_by_the_clock(bare):
    """Of a daemon whose clock was set back a day after its start."""
    bare.up()

    class Behind(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            said = bare.get(self.path)
            if self.path.endswith("/daemon"):
                said |= {"started": "2999-01-01T00:00:00.000Z", "up_time_seconds": 3700}
            body = json.dumps(said).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    at = str(bare.work / "behind.sock")
    with socketserver.ThreadingUnixStreamServer(at, Behind) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        said = bare.ok("gflowd", "status", env={"GFLOW_SOCKET": at})
        server.shutdown()
    assert "Uptime: 1h1m40s\n" in said
    assert bare.get("/api/v1/daemon")["up_time_seconds"] >= 0


def test_settings_say_where_they_come_from(bare):
    bare.config("[daemon]\ndevices = 'sim:5xT4'\n[scheduler]\nmax_queued = 7\n")
    bare.ok("gflowd", "up", env={"GFLOW_SCHEDULER__PREEMPT": "false"})
    rows = dict(row.split(None, 1) for row in bare.ok("gctl", "config", "show", "--origin").splitlines())
    file = bare.home / ".config/gflow/gflow.toml"
    assert rows["daemon.devices"].split() == ["sim:5xT4", f"{file}:2"]
    assert rows["scheduler.max_queued"].split() == ["7", f"{file}:4"]
    assert rows["scheduler.preempt"].split() == ["false", "GFLOW_SCHEDULER__PREEMPT"]
    assert rows["scheduler.max_submit"].split() == ["10000", "default"]
    # What the file says is taken at a restart; what a flag said stays until another one is given.
    bare.config("[daemon]\ndevices = 'sim:6xT4'\n")
    bare.ok("gflowd", "restart")
    assert "Total GPUs: 6" in bare.ok("ginfo")
    bare.ok("gflowd", "restart", "--devices", "sim:3xH100")
    bare.ok("gflowd", "restart")
    shown = bare.ok("gctl", "config", "show", "daemon.devices", "--origin").splitlines()[-1]
    assert shown.split() == ["daemon.devices", "sim:3xH100", "--devices"]
    wrong = bare.run("gctl", "config", "show", "scheduler.max_queue")
    assert wrong.code == 3 and "did you mean 'scheduler.max_queued'?" in wrong.err, wrong


def test_configuration_and_environment(bare):
    bare.config("[daemon]\ndevices = 'sim:5xT4'\n")
    bare.ok("gflowd", "up")
    assert "Total GPUs: 5" in bare.ok("ginfo")
    bare.down()
    bare.ok("gflowd", "up", env={"GFLOW_DAEMON__DEVICES": "sim:6xT4"})
    assert "Total GPUs: 6" in bare.ok("ginfo")


@pytest.mark.parametrize(
    ("zone", "typed", "instant"),
    [
        ("Europe/Berlin", "2027-01-10T12:00", "2027-01-10T11:00:00"),
        ("Europe/Berlin", "2027-07-10T12:00", "2027-07-10T10:00:00"),
        ("Europe/Berlin", "2027-03-28T02:30", "2027-03-28T01:30:00"),  # on no clock: forward at 2
        ("Europe/Berlin", "2027-10-31T02:30", "2027-10-31T00:30:00"),  # twice: the first
        ("America/New_York", "2027-11-07T01:30", "2027-11-07T05:30:00"),
        ("Asia/Shanghai", "2027-07-10T12:00", "2027-07-10T04:00:00"),
    ],
)
def test_begin_is_by_the_rules_of_the_zone_on_its_date(machine, zone, typed, instant):
    if not os.path.exists(f"/usr/share/zoneinfo/{zone}"):
        pytest.skip("no time zones are installed")
    job = machine.submit("--begin", typed, "true", env={"TZ": zone})
    assert machine.job(job)["spec"]["begin"].startswith(instant)
