# SPDX-License-Identifier: Apache-2.0
"""Messages in the reader's language: what people read follows the locale, what programs read never does."""

import json
import os
import re
import signal
from pathlib import Path

import pytest
from commands import COMMANDS
from machine import BIN, Machine
from terminal import Terminal, on_terminal, width_of

CHINESE = {"LANG": "zh_CN.UTF-8", "LC_ALL": "zh_CN.UTF-8"}
HAN = re.compile("[\u4e00-\u9fff]")


@pytest.fixture
def chinese(machine):
    """A machine whose users read Chinese; its daemon was started by somebody who reads English."""
    machine.environment |= CHINESE
    return machine


def busy(machine):
    machine.submit("--gpus", 2, "--time", "4:00:00", "--name", "runs", "sleep", "1000")
    machine.submit("--gpus", 2, "--name", "waits", "sleep", "1000")
    machine.running(1)


def columns_of(line):
    return sum(width_of(character) for character in line)


@pytest.mark.parametrize("command", COMMANDS)
def test_help_is_in_chinese_and_fits(chinese, command):
    text = chinese.ok(command, "--help")
    assert "用法：" in text and "退出码：" in text, text
    assert not [line for line in text.splitlines() if columns_of(line) > 80]
    english = chinese.run(command, "--help", env={"LC_ALL": "C"}).out
    assert not HAN.search(english) and "Usage: " in english


@pytest.mark.parametrize(
    ("environment", "is_chinese"),
    [
        ({"LC_ALL": "zh_CN.UTF-8"}, True),
        ({"LC_ALL": "", "LANG": "zh_CN.UTF-8"}, True),
        ({"LC_ALL": "", "LANG": "en_US.UTF-8", "LANGUAGE": "zh_CN:en"}, True),
        ({"LC_ALL": "C", "LANGUAGE": "zh_CN"}, False),
        ({"LC_ALL": "en_US.UTF-8"}, False),
        ({"LC_ALL": "zh_CN.GBK"}, False),
        ({"LC_ALL": "xx_XX.UTF-8"}, False),
    ],
)
def test_the_locale_decides_whether_the_system_has_it_or_not(machine, environment, is_chinese):
    ran = machine.run("gqueue", "--nonsense", env=environment)
    assert ran.code == 2
    assert ran.err.startswith("gqueue: 未知选项“--nonsense”" if is_chinese else "gqueue: unknown option '--nonsense'")


def test_errors_of_the_daemon_are_in_the_language_of_who_asked(chinese):
    busy(chinese)
    assert chinese.run("gjob", "show", 99).err == "gjob show: 没有任务 99\n"
    assert chinese.run("gjob", "release", 2).err.endswith("它没有挂起\n")
    in_english = chinese.run("gjob", "release", 2, env={"LC_ALL": "C"})
    assert in_english.err.endswith("it is not on hold\n")
    never = chinese.run("gbatch", "--gpus", 9, "true")
    assert never.code == 7 and "永远无法启动" in never.err


def test_the_queue_on_a_terminal(chinese):
    busy(chinese)
    terminal, code = on_terminal(chinese, "gqueue", "--no-pager", columns=80, rows=40, env=CHINESE)
    text = terminal.screen.text()
    assert (code, terminal.screen.wrapped) == (0, 0), text
    lines = text.splitlines()
    assert lines[0].split()[:3] == ["任务号", "名称", "状态"], text
    assert "1 个运行中，1 个等待中" in text, text
    # Columns stand below their headings: wide characters are counted as two.
    place = columns_of(lines[0][: lines[0].index("状态")])
    assert [line[place:].split()[0] for line in lines[1:3]] == ["R", "PD"], text


def test_why_it_waits(chinese):
    busy(chinese)
    text = chinese.ok("gjob", "why", 2)
    assert text.startswith("任务 2（waits）自 ") and "阻碍启动的原因：" in text, text
    assert "1.  资源\n" in text and "的任务 1 占用 GPU 0,1，最迟" in text, text
    english = chinese.run("gjob", "why", 2, env={"LC_ALL": "C"}).out
    assert english.startswith("Job 2 (waits) has been waiting since") and not HAN.search(english)


def test_what_programs_read_is_the_same_in_every_language(chinese):
    busy(chinese)
    for command in (
        ("gqueue", "-a", "-f", "JOBID,NAME,ST,STATE,NODES,NODELIST(REASON),REASON"),
        ("gqueue", "-o", "csv"),
        ("ginfo", "-1"),
        ("ginfo", "-l"),
        ("gflowd", "status"),
    ):
        ours = chinese.run(*command)
        assert ours.code == 0 and not HAN.search(ours.out), (command, ours.out)
    for command in (("gjob", "show", 2), ("gjob", "why", 2), ("gqueue",), ("ginfo",)):
        document = chinese.ok(*command, "--json")
        assert not HAN.search(document), document
        json.loads(document.splitlines()[0])
    submitted = chinese.run("gbatch", "--gpus", 0, "true")
    assert submitted.out == "Submitted batch job 3\n"


def test_nothing_that_is_kept_is_in_the_language_of_who_asked(chinese):
    busy(chinese)
    chinese.ok("gcancel", 2)
    document = chinese.run("gjob", "show", 1, 2, "--json", env={"LC_ALL": "C"}).out
    assert not HAN.search(document), document
    assert not HAN.search((chinese.logs / "gpu_resource_manager.log").read_text())


def test_a_begin_time_is_that_of_the_clock_on_the_wall():
    machine = Machine()
    try:
        machine.environment["TZ"] = "Asia/Shanghai"
        machine.up()
        machine.submit("--begin", "2099-03-01T12:00", "true")
        assert "(BeginTime: 2099-03-01 12:00:00)" in machine.ok("gqueue", "-j", 1)
        shown = machine.ok("gjob", "show", 1)
        assert "  Reason        BeginTime: 2099-03-01 12:00:00\n" in shown
        assert shown.count("\n  Begin  ") == 1
        with Terminal(machine, "gjob", "wait", 1, columns=120) as waits:
            waits.shows("(BeginTime: 2099-03-01 12:00:00)")
        with Terminal(machine, "gjob", "log", "-f", 1, columns=120) as waits:
            waits.shows("Waiting for job 1 to start: BeginTime: 2099-03-01 12:00:00")
    finally:
        machine.close()


def test_a_program_without_its_catalogue_speaks_english(chinese, tmp_path):
    alone = tmp_path / "bin"
    alone.mkdir()
    (alone / "gflow").write_bytes((BIN / "gflow").read_bytes())
    (alone / "gflow").chmod(0o755)
    assert "Usage: " in chinese.ok(str(alone / "gflow"), "--help")


def supervisor_of(job):
    """The parent of the first process of a job that runs."""
    return int(Path(f"/proc/{job['pid']}/stat").read_text().rpartition(")")[2].split()[1])


def check_ends(chinese, ends):
    """How each job ended is read in the reader's language, and kept in English: {job: (Chinese, English)}."""
    for job, (ours, theirs) in ends.items():
        shown = chinese.ok("gjob", "show", job)
        assert ours in shown and theirs not in shown, shown
        shown = chinese.run("gjob", "show", job, env={"LC_ALL": "C"}).out
        assert theirs in shown and not HAN.search(shown), shown
        assert not HAN.search(chinese.ok("gjob", "show", job, "--json"))


@pytest.mark.devices("sim:8xV100")
def test_sentences_that_are_kept_are_read_in_the_readers_language(chinese):
    """Made by the daemon for readers of any language, and stored: why these GPUs, and how a job ended."""
    english = {"LC_ALL": "C"}
    fails = chinese.submit("false")
    chinese.wait(fails)
    runs = chinese.submit("--gpus", 3, "sleep", "1000")
    waits = chinese.submit("--hold", "true")
    hopeless = chinese.submit("--depends-on", fails, "true")
    chinese.running(runs)
    assert "环带宽 " in (shown := chinese.ok("gjob", "show", runs)) and "ring of" not in shown, shown
    assert "ring of " in (shown := chinese.run("gjob", "show", runs, env=english).out) and not HAN.search(shown), shown
    labels = re.findall(r"^  (\S+)  ", chinese.ok("gjob", "show", runs), re.M)
    assert len(labels) > 10 and len(set(labels)) == len(labels), labels
    chinese.ok("gcancel", waits, runs)
    chinese.wait(waits, runs)
    killed = chinese.running(chinese.submit("sleep", "1000"))
    os.kill(supervisor_of(killed), signal.SIGKILL)
    chinese.wait(killed["id"])
    ends = {
        waits: ("启动前已被 ", "cancelled by "),
        runs: ("已取消", "cancelled"),
        hopeless: (f"它依赖的任务没有完成：任务 {fails}（Failed）", f"a job it depends on did not finish: job {fails} (Failed)"),
        killed["id"]: ("其监护进程被终止；任务如何结束未知", "its supervisor was killed; how the job ended is not known"),
    }
    check_ends(chinese, ends)


def test_the_words_of_a_person_stay_his_own(chinese):
    """A reason to drain that reads like a sentence of gflow's own: nobody translates what somebody wrote."""
    chinese.ok("gctl", "drain", "node", "--reason", "it was not stored")
    job = chinese.submit("true")
    assert "已停用：it was not stored" in chinese.ok("gjob", "why", job)
    assert "Drained: it was not stored" in chinese.run("gjob", "why", job, env={"LC_ALL": "C"}).out


def test_what_the_supervisor_says_is_read_in_the_readers_language(chinese):
    gone = chinese.work / "gone"
    gone.mkdir()
    moved = chinese.submit("--chdir", str(gone), "--hold", "true")
    gone.rmdir()
    chinese.ok("gjob", "release", moved)
    script = chinese.work / "job.sh"
    script.write_text("#!/no/such/interpreter\n")
    script.chmod(0o755)
    interpreted = chinese.submit(str(script))
    tool = chinese.work / "tool"
    tool.write_bytes(Path("/bin/true").read_bytes())
    tool.chmod(0o755)
    missing = chinese.submit("--hold", str(tool))
    tool.unlink()
    chinese.ok("gjob", "release", missing)
    told = chinese.running(chinese.submit("sleep", "1000"))
    os.kill(supervisor_of(told), signal.SIGTERM)
    chinese.wait(moved, interpreted, missing, told["id"])
    ends = {
        moved: (f"无法进入工作目录“{gone}”：", f"change to the working directory '{gone}': "),
        interpreted: ("无法运行脚本的解释器 ", "run the interpreter of the script "),
        missing: (f"无法运行“{tool}”：", f"run '{tool}': "),
        told["id"]: ("其监护进程被要求结束（SIGTERM）", "its supervisor was told to end (SIGTERM)"),
    }
    check_ends(chinese, ends)
