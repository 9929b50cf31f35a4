# SPDX-License-Identifier: Apache-2.0
"""gctl config: what is in force and where it comes from, files checked without a daemon, settings changed."""

import json
import os
import re
import stat
import subprocess
from pathlib import Path

import pytest

OURS = """# of the lab
[scheduler]
preempt = true          # as agreed
max_queued = 500

[access]
operators = "bob"
"""


def test_wrong_lines_are_named_without_a_daemon(bare):
    wrong = bare.work / "gflow.toml"
    wrong.write_text("[scheduler]\nbackfil_patience = '1h'\npreempt = true\nmax_queued = 0\n")
    gpus = bare.work / "gpu_config.yaml"
    gpus.write_text("monitor_update_interval: soon\ngpu_memory_specs:\n  T4: 16.0\n  fast: 3\nlog_level: INFO\n")
    ran = bare.run("gctl", "config", "check", wrong, gpus)
    assert ran.code == 1, ran
    assert ran.out.splitlines() == [
        f"{wrong}:2: there is no key 'scheduler.backfil_patience'; did you mean 'scheduler.backfill_patience'?",
        f"{wrong}:4: scheduler.max_queued: '0' is not a number from 1 to 100000000",
        f"{gpus}:1: monitor_update_interval: 'soon' is not a whole number from 1 to 86400",
        f"{gpus}:4: gpu_memory_specs.fast: is not a model of a GPU",
    ]
    said = json.loads(bare.run("gctl", "config", "check", "--json", wrong, gpus).out)
    assert said["kind"] == "ConfigCheck"
    assert [[problem["line"] for problem in file["problems"]] for file in said["files"]] == [[2, 4], [1, 4]]
    assert bare.run("gctl", "config", "check", bare.work / "none.toml").code == 3
    assert "the defaults are in force" in bare.ok("gctl", "config", "check")
    bare.config(OURS)
    assert bare.ok("gctl", "config", "check") == f"{bare.home}/.config/gflow/gflow.toml: no errors\n"


@pytest.mark.parametrize(("name", "text"), [("gflow.toml", "[scheduler\n"), ("gflow.toml", "[scheduler]\nmax_queued = 0\n"),
                                            ("gpu_config.yaml", "log_level: [\n")])
def test_a_mistake_in_a_file_is_none_on_the_command_line(machine, name, text):
    """What to do is in the file, and no help of a command tells of it."""
    path = machine.home / ".config/gflow" / name
    machine.config("")
    path.write_text(text)
    for words in (["gflowd", "reload"], ["gctl", "config", "reload"], ["gflowd", "restart"], ["gflowd"]):
        ran = machine.run(*words)
        assert ran.code == 2 and f"{path}:" in ran.err and "--help" not in ran.err, ran
    machine.kill_daemon()
    ran = machine.run("gflowd", "up", "--devices", "sim:1xNothing")
    assert f"{path}:" in ran.err and "--help" not in ran.err, ran
    path.unlink()
    ran = machine.run("gflowd", "up", "--devices", "sim:1xNothing")
    assert ran.code == 2 and "--help" in ran.err, ran


def test_a_file_named_at_the_start_that_is_no_more_is_named(bare):
    """By who starts it with the words of the last start, which nobody typed this time."""
    named = bare.work / "mine.toml"
    named.write_text("")
    bare.ok("gflowd", "up", "--devices", "sim:1xH100", "--gflow-config", named)
    named.unlink()
    ran = bare.run("gflowd", "restart")
    assert ran.code == 3 and f"open '{named}': No such file or directory" in ran.err, ran
    assert ran.err.startswith("gflowd restart: open ") and "keeps running" in ran.err, ran
    named.write_text("[scheduler\n")
    bare.kill_daemon()
    ran = bare.run("gflowd", "restart")
    assert ran.code == 2 and f"{named}:1: " in ran.err, ran


def test_a_file_that_is_no_toml_keeps_nobody_from_the_daemon(machine):
    """It is the daemon's next start that needs it: till then jobs are seen, ended, submitted, and the daemon stopped."""
    machine.config("[scheduler\n")
    path = machine.home / ".config/gflow/gflow.toml"
    for words in (["gbatch", "true"], ["gqueue"], ["gflowd", "status"], ["gflowd", "down"]):
        ran = machine.run(*words)
        assert ran.code == 0 and ran.err.count(f"{path}:1: ") == 1, ran
        assert "asking at the usual socket" in ran.err, ran
    ran = machine.run("gqueue", "--gflow-config", path)
    assert ran.code == 2 and f"{path}:1: " in ran.err, ran


def test_the_other_gflows_keys_are_no_errors(bare):
    bare.config("[daemon]\nport = 59000\n")
    ran = bare.run("gctl", "config", "check")
    assert ran.code == 0 and "daemon.port" in ran.err and "no errors" in ran.out, ran


def test_a_setting_is_changed_in_its_file_and_taken_up(bare):
    bare.config(OURS)
    path = bare.home / ".config/gflow/gflow.toml"
    path.chmod(0o640)
    bare.up()
    out = bare.ok("gctl", "config", "set", "max_queued", "7")
    assert out == f"scheduler.max_queued: 500 -> 7 ({path})\n" + "in force\n"
    assert path.read_text() == OURS.replace("500", "7")
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    shown = json.loads(bare.ok("gctl", "config", "show", "--json", "scheduler.max_queued"))["settings"][0]
    assert (shown["value"], shown["origin"]) == ("7", f"{path}:4")
    said = json.loads(bare.ok("gctl", "config", "unset", "scheduler.max_queued", "--json"))
    assert (said["before"], said["value"], said["state"]) == ("7", "2000000", "in_force"), said
    assert path.read_text() == OURS.replace("max_queued = 500\n", "")
    out = bare.ok("gctl", "config", "set", "runner.cgroups", "false")
    assert "'gflowd restart'" in out and path.read_text().endswith("[runner]\ncgroups = false\n"), out
    assert sorted(os.listdir(path.parent)) == ["gflow.toml"]


def test_what_gflowd_would_not_take_is_not_written(bare):
    bare.config(OURS)
    path = bare.home / ".config/gflow/gflow.toml"
    for words, code, says in [
        (["set", "scheduler.max_queued", "0"], 2, "'0' is not a number from 1 to"),
        (["set", "scheduler.max_queue", "5"], 2, "did you mean 'scheduler.max_queued'?"),
        (["unset", "node.name"], 3, "node.name is not set in"),
    ]:
        ran = bare.run("gctl", "config", *words)
        assert ran.code == code and says in ran.err, ran
        assert path.read_text() == OURS
    path.write_text(OURS + "nonsense = 1\n")
    ran = bare.run("gctl", "config", "set", "scheduler.max_queued", "5")
    assert ran.code == 2 and f"{path}:8: there is no key 'access.nonsense'" in ran.err, ran
    assert path.read_text() == OURS + "nonsense = 1\n"


def test_certificates_that_gflowd_cannot_use_are_refused_before_it_is_stopped(bare, tmp_path):
    """One that is not there, a key that others can read, one without the other, what is no certificate."""
    for name in ("own", "other"):
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",  # noqa: S607
                        "-keyout", f"{name}.key", "-out", f"{name}.crt", "-subj", "/CN=lab1"],
                       cwd=tmp_path, check=True, capture_output=True)
    own, other = tmp_path / "own", tmp_path / "other"
    open_key = tmp_path / "open.key"
    open_key.write_bytes(Path(f"{own}.key").read_bytes())
    open_key.chmod(0o644)
    served = '[api]\ntls_listen = "127.0.0.1:0"\n'
    bare.config(served)
    path = bare.home / ".config/gflow/gflow.toml"
    bare.up()
    pid = json.loads(bare.ok("gflowd", "status", "--json"))["pid"]
    for line, lines, says in [
        (3, f'tls_certificate = "/nonexistent/c.crt"\ntls_key = "{own}.key"\n', "/nonexistent/c.crt"),
        (3, f'tls_certificate = "{own}.crt"\ntls_key = "{open_key}"\n', "others can read the key"),
        (3, f'tls_certificate = "{own}.crt"\n', "go together"),
        (3, f'tls_key = "{own}.key"\n', "go together"),
        (3, f'tls_certificate = "{own}.crt"\ntls_key = "{other}.key"\n', "is not the key (PEM) of the certificate"),
        (3, f'client_ca = "{own}.key"\n', "is not a file of certificates"),
        (3, 'client_ca = "/nonexistent/ca.crt"\n', "/nonexistent/ca.crt"),
    ]:
        path.write_text(served + lines)
        ran = bare.run("gctl", "config", "check")
        assert ran.code == 1 and f"{path}:{line}: " in ran.out and says in ran.out, (lines, ran)
        ran = bare.run("gflowd", "restart")
        assert ran.code != 0 and says in ran.err and "keeps running" in ran.err, (lines, ran)
        assert json.loads(bare.ok("gflowd", "status", "--json"))["pid"] == pid
    path.write_text(served)
    ran = bare.run("gctl", "config", "set", "api.client_ca", f"{own}.key")
    assert ran.code == 2 and "is not a file of certificates" in ran.err and path.read_text() == served, ran
    path.write_text(served + f'tls_certificate = "{own}.crt"\ntls_key = "{own}.key"\n')
    assert bare.ok("gctl", "config", "check").startswith(f"{path}: no errors")
    bare.ok("gctl", "config", "set", "api.client_ca", f"{own}.crt")
    bare.ok("gflowd", "restart")


def test_what_needs_a_restart_is_said_until_there_was_one(bare):
    bare.config('[api]\nhost_names = "lab9"\n')
    path = bare.home / ".config/gflow/gflow.toml"
    bare.up()
    path.write_text("")
    ran = bare.run("gctl", "config", "reload")
    assert ran.code == 0 and ran.out == "configuration reloaded\n" and "restart" in ran.err and "api.host_names" in ran.err, ran
    for words in (["gflowd", "reload"], ["gflowd", "status"]):
        assert "api.host_names" in bare.run(*words).err
    assert "api.host_names" in bare.run("gflow", "doctor").out
    assert json.loads(bare.ok("gflowd", "status", "--json"))["settings_for_restart"] == ["api.host_names"]
    [shown] = json.loads(bare.ok("gctl", "config", "show", "--json", "api.host_names"))["settings"]
    assert (shown["value"], shown["origin"]) == ("lab9", f"{path}:2"), shown
    bare.ok("gflowd", "restart")
    ran = bare.run("gctl", "config", "reload")
    assert (ran.out, ran.err) == ("configuration reloaded\n", ""), ran
    [shown] = json.loads(bare.ok("gctl", "config", "show", "--json", "api.host_names"))["settings"]
    assert (shown["value"], shown["origin"]) == ("", "default"), shown


def test_a_link_stays_a_link_and_a_missing_file_is_made(bare):
    path = bare.home / ".config/gflow/gflow.toml"
    assert "not running" in bare.ok("gctl", "config", "set", "node.name", "lab7")
    assert path.read_text() == '[node]\nname = "lab7"\n'
    kept = bare.work / "dotfiles.toml"
    path.rename(kept)
    path.symlink_to(kept)
    bare.ok("gctl", "config", "set", "node.name", "lab8")
    assert path.is_symlink() and kept.read_text() == '[node]\nname = "lab8"\n'


def test_what_goes_before_the_file_is_said(bare):
    bare.environment["GFLOW_SCHEDULER__PREEMPT"] = "true"
    bare.up()
    out = bare.ok("gctl", "config", "set", "scheduler.preempt", "false")
    assert out.endswith("GFLOW_SCHEDULER__PREEMPT overrides the file and stays in force\n"), out
    (other := bare.work / "other.toml").write_text("")
    out = bare.ok("gctl", "config", "set", "scheduler.preempt", "false", "--gflow-config", other)
    assert "reads another file" in out and other.read_text() == "[scheduler]\npreempt = false\n"


def test_reload_and_completion(bare):
    bare.up()
    assert bare.ok("gctl", "config", "reload") == "configuration reloaded\n"
    assert json.loads(bare.ok("gctl", "config", "reload", "--json"))["kind"] == "Settings"
    bare.config("[scheduler]\nmax_queued = 0\n")
    ran = bare.run("gctl", "config", "reload")
    assert ran.code == 2 and "gflow.toml:2: scheduler.max_queued" in ran.err, ran


# -- gpu_config.yaml of the guide

DOCUMENT = Path(__file__).parents[1] / "fixtures/documents/gpu_resource_manager.md"
GUIDE = re.search(r"(?ms)^```yaml\n(.*?)^```", DOCUMENT.read_text())[1]

DEVICE = "gpus:\n- {{model: H100, uuid: GPU-a, memory_total: 80G, memory_used: {used}, utilization_percent: {busy}}}\n"


@pytest.fixture
def watched(bare):
    """A machine whose devices are a file; its gpu_config.yaml is that of the guide."""
    bare.file = bare.work / "devices.yaml"
    bare.devices = f"sim:{bare.file}"
    bare.gpus = bare.home / ".config/gflow/gpu_config.yaml"
    bare.gpus.parent.mkdir(parents=True)
    bare.gpus.write_text(GUIDE)
    bare.busy = lambda used, busy: bare.file.write_text(DEVICE.format(used=used, busy=busy))
    bare.busy("1024M", 0)
    return bare


def reads(machine, used, busy):
    """Waits for that reading. A change of utilisation alone wakes nobody, so each has another memory, too."""
    machine.busy(used, busy)
    while True:
        revision = machine.get("/api/v1/jobs?limit=1")["revision"]
        device = machine.get("/api/v1/machine")["nodes"][0]["devices"][0]
        if (device["memory_used_bytes"], device["utilization_percent"]) == (int(used[:-1]) << 20, busy):
            return
        machine.get(f"/api/v1/changes?revision={revision}")


def test_the_file_of_the_guide_is_in_force_and_says_so(watched):
    assert watched.ok("gctl", "config", "check", watched.gpus) == f"{watched.gpus}: no errors\n"
    watched.up()
    settings = {one["name"]: one for one in json.loads(watched.ok("gctl", "config", "show", "--json"))["settings"]}
    for name, value in [("monitor_update_interval", "30s"), ("resource_change_threshold", "0.05")]:
        one = settings["gpu_config." + name]
        assert (one["value"], one["origin"]) == (value, str(watched.gpus)), one
    assert "H100=80G" in settings["gpu_config.gpu_memory_specs"]["value"]
    assert settings["daemon.log_level"]["origin"] == str(watched.gpus)
    assert "30s" in watched.ok("gctl", "config", "show", "gpu_config")


def test_changes_beyond_the_threshold_are_in_the_log(watched):
    watched.up()
    log = watched.logs / "gpu_resource_manager.log"
    reads(watched, "1025M", 40)
    reads(watched, "1026M", 43)  # too little to be told
    reads(watched, "40960M", 44)
    lines = [line.split(" ", 1)[1] for line in log.read_text().splitlines() if " gpu_resource_manager: " in line]
    node = watched.get("/api/v1/machine")["nodes"][0]["name"]
    assert lines == [
        f"info gpu_resource_manager: GPU 0 of {node} (GPU-a): utilization 0% -> 40%",
        f"info gpu_resource_manager: GPU 0 of {node} (GPU-a): memory_used 1G -> 40G",
    ], lines
    assert any(" info gflowd: " in line for line in log.read_text().splitlines())


def test_the_log_level_of_the_guide_and_its_change(watched):
    watched.gpus.write_text(GUIDE.replace("INFO", "DEBUG"))
    watched.up()
    log = watched.logs / "gpu_resource_manager.log"
    reads(watched, "1025M", 50)
    assert " debug gpu_resource_manager: 1 GPUs read, " in log.read_text()
    watched.gpus.write_text(GUIDE.replace("INFO", "ERROR"))
    watched.ok("gctl", "config", "reload")
    said = log.read_text()
    reads(watched, "1026M", 90)
    assert log.read_text() == said


def test_a_wrong_file_is_refused_with_its_line_and_the_old_one_stays(watched):
    watched.up()
    watched.gpus.write_text(GUIDE.replace("monitor_update_interval: 30", "monitor_update_interval: often"))
    ran = watched.run("gctl", "config", "reload")
    assert ran.code == 2 and f"{watched.gpus}:24: monitor_update_interval: 'often'" in ran.err, ran
    assert "30s" in watched.ok("gctl", "config", "show", "gpu_config.monitor_update_interval")
