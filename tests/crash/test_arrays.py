# SPDX-License-Identifier: Apache-2.0
"""The tasks of an array are one record until they start: kill -9 in the midst of them loses none and runs none twice."""

import re


def submitted(out):
    return [int(number) for number in re.findall(r"job (\d+)", out)]


def test_a_daemon_killed_again_and_again_in_an_array(machine):
    line = f'echo "$GFLOW_ARRAY_TASK_ID of $GFLOW_ARRAY_TASK_COUNT as $GFLOW_JOB_NAME" | tee -a {machine.work}/ran'
    jobs = submitted(
        machine.ok("gbatch", "--hold", "--gpus", "1", "--array", "5-45:2,100", "--name", "sweep", "bash", "-c", line)
    )
    tasks = [*range(5, 46, 2), 100]
    assert len(jobs) == len(tasks)
    machine.ok("gcancel", jobs[10])
    machine.ok("gjob", "release", *(job for place, job in enumerate(jobs) if place not in (10, 15)))
    for seen in range(0, len(jobs), 4):
        machine.wait(jobs[seen])
        machine.kill_daemon()
        machine.up()
    machine.ok("gjob", "release", jobs[15])
    ended = machine.wait(*jobs)
    assert ended[10]["status"] == "Cancelled"
    ran = [task for place, task in enumerate(tasks) if place != 10]
    lines = (machine.work / "ran").read_text().splitlines()
    assert sorted(lines) == sorted(f"{task} of {len(tasks)} as sweep_{task}" for task in ran)
    assert [job["spec"]["name"] for job in ended] == [f"sweep_{task}" for task in tasks]


def test_what_waits_of_an_array_is_there_after_a_kill(machine):
    jobs = submitted(machine.ok("gbatch", "--hold", "--array", "1-10000", "bash", "-c", "exit $((GFLOW_ARRAY_TASK_ID % 100))"))
    assert len(jobs) == 10_000
    names = [machine.job(job)["spec"]["name"] for job in (jobs[0], jobs[-1])]
    machine.ok("gcancel", jobs[5000])
    machine.kill_daemon()
    machine.up()
    assert [machine.job(job)["spec"]["name"] for job in (jobs[0], jobs[-1])] == names
    assert machine.job(jobs[5000])["status"] == "Cancelled"
    machine.ok("gjob", "release", jobs[0], jobs[4998], jobs[-1])
    ended = machine.wait(jobs[0], jobs[4998], jobs[-1])
    assert [job["outcome"]["exit_code"] for job in ended] == [1, 99, 0]
    assert machine.job(jobs[4999])["status"] == "Hold"
