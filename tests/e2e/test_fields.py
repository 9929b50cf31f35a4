# SPDX-License-Identifier: Apache-2.0
"""Fields of a job as its description has them: submitted, changed, refused, shown, listed, kept."""

from machine import Gate


def test_a_field_is_submitted_changed_shown_listed_and_kept(bare):
    bare.up()
    job = bare.submit("--hold", "--project", "vision", "true")
    bare.ok("gjob", "update", job, "--project", "speech", "--grace", "5m", "--requeue", "yes")
    for _ in range(2):
        row = bare.ok("gqueue", "-j", job, "-f", "PROJECT,GRACE,REQUEUE,MAX_RETRIES").splitlines()[1]
        assert row.split() == ["speech", "5m", "yes", "0"]
        spec = bare.job(job)["spec"]
        assert (spec["project"], spec["grace_seconds"], spec["requeue"]) == ("speech", 300, True)
        bare.kill_daemon()
        bare.up()
    refused = bare.run("gjob", "update", job, "--requeue", "maybe")
    assert refused.code == 2 and "--requeue: 'maybe' is neither yes nor no" in refused.err


def test_a_project_is_refused_alike_wherever_it_is_said(bare):
    bare.up()
    job = bare.submit("--hold", "true")
    for project, reason in (("x" * 200, "its project has 200 characters; the maximum is 64"),
                            (" ", "its project is blank"),
                            (" vision", "its project begins or ends with a blank: ' vision'; write 'vision'")):
        for words in (["gbatch", "--hold", "--project", project, "true"], ["gjob", "update", job, "--project", project]):
            refused = bare.run(*words)
            assert refused.code == 2 and reason in refused.err, refused
    bare.ok("gjob", "update", job, "--project", "计算机视觉" * 12)


def test_what_can_be_changed_while_a_job_runs_is_in_the_help(bare):
    """And is what is then taken."""
    text = " ".join(bare.ok("gjob", "update", "--help").split())
    assert "while a job runs: --name, --gpus, --priority, --time-limit, --requeue, --max-retries, --preemptible, --preempt-signal, --max-concurrent." in text


def test_an_update_of_a_running_job_is_refused_by_the_field(bare):
    bare.up()
    gate = Gate(bare)
    job = bare.submit("bash", "-c", gate.command)
    gate.reached()
    bare.running(job)
    bare.ok("gjob", "update", job, "--requeue", "yes", "--time-limit", "2h")
    refused = bare.run("gjob", "update", job, "--grace", "5m")
    assert refused.code != 0 and f"job {job} is running: its grace can no longer be changed, only name" in refused.err
    assert bare.job(job)["spec"]["grace_seconds"] == 30
    gate.open()
    assert bare.wait(job)[0]["status"] == "Finished"


def test_what_was_told_to_stop_is_not_called_cancelled_yet(bare):
    bare.up()
    gate = Gate(bare)
    job = bare.submit("--grace", "10m", "bash", "-c", f"trap '' TERM; {gate.command}")
    gate.reached()
    bare.running(job)
    held = bare.submit("--hold", "true")
    assert bare.ok("gcancel", job, held) == f"Job {job} is being stopped.\nJob {held} cancelled.\n"
    gate.open()
    assert bare.wait(job)[0]["outcome"] is not None
