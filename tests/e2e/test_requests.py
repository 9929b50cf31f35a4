# SPDX-License-Identifier: Apache-2.0
"""What a request for GPUs means, from `gflow spec` to the job that runs by it: docs/requests.md."""

import json
import re

import pytest
from http_client import ask
from machine import Gate

DOCUMENT = {  # every format of the documents: GPUs, parts of each, memory, vendor, models
    "2": (2, 10000, None, None, []),
    "1": (1, 10000, None, None, []),
    "0.5": (1, 5000, None, None, []),
    "0.25": (1, 2500, None, None, []),
    "2(V100)": (2, 10000, None, None, ["V100"]),
    "1(V100)": (1, 10000, None, None, ["V100"]),
    "4(A100)": (4, 10000, None, None, ["A100"]),
    "1(nvidia,V100)": (1, 10000, None, "nvidia", ["V100"]),
    "8G,0.5": (1, 5000, 8 << 30, None, []),
    "16G,0.75": (1, 7500, 16 << 30, None, []),
}


@pytest.mark.parametrize("text", DOCUMENT)
def test_spec_explains_the_formats_of_the_documents(text, bare):
    spec = json.loads(bare.ok("gflow", "spec", text, "--json"))
    said = tuple(spec[k] for k in ("gpus", "gpu_share_parts", "gpu_memory_bytes", "gpu_vendor", "gpu_models"))
    assert said == DOCUMENT[text]
    assert spec["canonical"] == text and spec["resource_name"] == "nvidia.com/gpu"
    assert spec["load_mode"] == ("virtual" if "0." in text else "count")
    assert text in bare.ok("gflow", "spec", text).splitlines()[0]


def test_spec_marks_what_is_wrong(bare):
    ran = bare.run("gflow", "spec", "2（nvdia）")
    assert ran.code == 2 and ran.out == ""
    assert ran.err.splitlines() == [
        "gflow spec: 'nvdia' is neither a vendor nor a model of GPUs; did you mean nvidia?",
        "  2（nvdia）",
        "     ^^^^^",
    ]
    for text in ("abc", "1.5", "8G", "2()", "-3", "0.00001", ""):
        ran = bare.run("gflow", "spec", "--", text)
        assert ran.code == 2 and ran.out == "", text


def test_spec_takes_names_from_gpu_config(bare):
    path = bare.home / ".config/gflow/gpu_config.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("gpu_resource:\n  dcu: hygon.com/dcunum\n  npu: huawei.com/Ascend910\n")
    assert json.loads(bare.ok("gflow", "spec", "1(dcu)", "--json"))["resource_name"] == "hygon.com/dcunum"
    assert json.loads(bare.ok("gflow", "spec", "8(npu)", "--json"))["resource_name"] == "huawei.com/Ascend910"
    path.write_text("gpu_resource:\n  npu: huawei.com/npu\ngpu_memory_spec: {}\n")
    ran = bare.run("gflow", "spec", "1")
    assert ran.code == 2 and "gpu_config.yaml:3: gpu_memory_spec: unknown key; did you mean" in ran.err


def test_parts_of_a_gpu_run_side_by_side(machine):
    gates = [Gate(machine, name) for name in ("first", "second")]
    jobs = [machine.submit("--gpus", "8G,0.5", gate.command) for gate in gates]
    for gate in gates:
        gate.reached()
    shown = [machine.running(job) for job in jobs]
    assert shown[0]["gpu_indices"] == shown[1]["gpu_indices"] == [0]
    info = machine.ok("ginfo")
    assert f"In use by jobs {jobs[0]}, {jobs[1]}" in info
    assert f"{jobs[0]} " in machine.ok("gqueue", "-f", "JOBID,GPUS,NODES") and "8G,0.5" in machine.ok("gqueue", "-f", "GPUS")
    for gate in gates:
        gate.open()
    machine.wait(*jobs)


def test_a_model_that_is_not_there_is_refused(machine):
    ran = machine.run("gbatch", "--gpus", "1(V100)", "true")
    assert ran.code == 7 and "V100" in ran.err and "RTX3090" in ran.err
    assert machine.wait(machine.submit("--gpus", "1(rtx 3090)", "true"))[0]["status"] == "Finished"
    assert machine.wait(machine.submit("--gres", "gpu:3090:2", "true"))[0]["status"] == "Finished"


def test_memory_that_no_gpu_has_is_refused(machine):
    assert machine.run("gbatch", "--gpus", "1,25G", "true").code == 7
    assert machine.run("gbatch", "--gpus", "1", "--gpu-memory", "25G", "true").code == 7


def test_taking_turns_needs_memory(machine):
    ran = machine.run("gbatch", "--gpus", "1", "--shared", "true")
    assert ran.code == 2 and "--gpu-memory" in ran.err
    gate = Gate(machine)
    job = machine.submit("--gpus", "1", "--shared", "--gpu-memory", "8G", gate.command)
    gate.reached()
    shown = machine.running(job)
    assert "8G of memory on it" in machine.ok("gjob", "show", job)
    assert shown["spec"]["request"]["gpu_mode"] == "time_slice"
    gate.open()
    machine.wait(job)


def test_dry_run_says_where_it_would_run(machine):
    out = machine.ok("gbatch", "--dry-run", "--gpus", "2", "true")
    assert "Would submit 1 batch job" in out and "It would start now:\n       GPU 0,1\n" in out
    assert "0 of 2 GPUs stay free" in out and "score" not in out
    assert "score" in machine.ok("gbatch", "--dry-run", "-v", "--gpus", "2", "true")
    documents = [json.loads(line) for line in machine.ok("gbatch", "--dry-run", "--json", "--gpus", "0.5", "true").splitlines()]
    assert [document["kind"] for document in documents] == ["Submit", "Placement"]
    placement = documents[1]
    assert placement["fits"] and placement["ranked"][0]["gpu_indices"] in ([0], [1])
    assert machine.run("gbatch", "--dry-run", "--gpus", "1(V100)", "true").code == 7


@pytest.mark.devices("sim:8xV100")
def test_dry_run_names_up_to_three_sets_of_gpus(machine):
    out = machine.ok("gbatch", "--dry-run", "--gpus", "3", "true")
    places = re.findall(r"^(?:       |   or  )GPU (\d,\d,\d)$", out, re.M)
    assert out.count("\n   or  GPU ") == 2, out
    links = [int(percent) for percent in re.findall(r"links (\d+) of 100: ring of", out)]
    assert len(set(places)) == 3, out
    # Two of them differ in nothing that is told: these words come once.
    assert links == [100, 100] and out.count("5 of 8 GPUs stay free") == 2, out
    assert out.count("\n       equally good\n") == 1, out
    taken = machine.ok("gbatch", "--dry-run", "--gpus", "8", "true")
    assert len(re.findall(r"^ .* GPU \d,", taken, re.M)) == 1 and "   or  " not in taken, taken


@pytest.mark.devices("sim:8xV100")
def test_dry_run_of_an_array_says_how_many_start_and_where(machine):
    machine.submit("--gpus", 3, "sleep", "1000")
    machine.running(1)
    out = machine.ok("gbatch", "--dry-run", "--array", "1-20", "--gpus", 2, "true")
    assert "\n2 of 20 would start now:\n  [1] GPU " in out, out
    places = re.findall(r"^  \[(\d+)\] GPU (\d),(\d)$", out, re.M)
    assert [number for number, *_ in places] == ["1", "2"], out
    taken = [gpu for _, *gpus in places for gpu in gpus] + [str(gpu) for gpu in machine.job(1)["gpu_indices"]]
    assert len(set(taken)) == 7, out  # none is promised twice
    one = machine.ok("gbatch", "--dry-run", "--array", "1-20", "--max-concurrent", 1, "--gpus", 2, "true")
    assert "\n1 of 20 would start now:\n" in one, one
    document = json.loads(machine.ok("gbatch", "--dry-run", "--json", "--array", "1-20", "--gpus", 2, "true").splitlines()[1])
    assert [len(start["places"]) for start in document["starts"]] == [1, 1]
    machine.submit("--gpus", 4, "sleep", "1000")
    machine.running(2)
    none = machine.ok("gbatch", "--dry-run", "--array", "1-20", "--gpus", 2, "true")
    assert "\nNo node has room for any of them now: they would wait.\n" in none, none


def test_dry_run_names_what_keeps_it_waiting_whatever_is_free(machine):
    gate = Gate(machine, "a")
    runs = machine.submit("bash", "-c", gate.command)
    failed = machine.submit("false")
    finished = machine.submit("true")
    machine.run("gjob", "wait", failed, finished)
    gate.reached()

    def dry(*options):
        return machine.ok("gbatch", "--dry-run", "--gpus", 1, *options, "true")

    assert "It would start now" in dry() and "It would start now" in dry("--depends-on", finished)
    table = {
        ("--hold",): "It would be on hold until 'gjob release'.",
        ("--begin", "now+30d"): "It would wait until its begin time: ",
        ("--depends-on", runs): f"It would wait until job {runs} has finished.",
        ("--depends-on-any", f"{runs},{failed}"): f"It would wait until job {runs} has finished.",
        ("--depends-on", failed): f"It would be cancelled at once: job {failed} (Failed) did not finish.",
        ("--depends-on", failed, "--no-auto-cancel"): f"It would never start: job {failed} (Failed) did not finish.",
    }
    for options, words in table.items():
        out = dry(*options)
        never = failed in options and "--depends-on" in options
        # Where there is room is nothing to one that will not start.
        assert words in out and ("There is room now:" in out) != never and "would start now" not in out, (options, out)
    assert dry("--depends-on", failed).endswith(table["--depends-on", failed] + "\n")
    over = machine.run("gbatch", "--parsable", "--depends-on", failed, "true")
    assert over.code == 0 and f"job {over.out.strip()} was cancelled at once: a job it depends on did not finish: job {failed} (Failed)" in over.err, over
    assert "There is room now for 2 of 3" in dry("--hold", "--array", "1-3")
    # Programs get the same, as data that the daemon decided.
    answer = dry("--json", "--hold", "--begin", "now+30d", "--depends-on-any", f"{runs},{failed}")
    placement = json.loads(answer.splitlines()[1])
    assert [blocker["kind"] for blocker in placement["blockers"]] == ["hold", "dependency", "begin"] and placement["fits"]
    waits = placement["blockers"][1]
    assert (waits["jobs"], waits["mode"], waits["never"], placement["cancelled"]) == ([runs], "any", False, False)
    never = json.loads(dry("--json", "--depends-on", failed).splitlines()[1])
    assert never["cancelled"] and never["blockers"][0] | {"never": True, "end": "Failed", "jobs": [failed]} == never["blockers"][0]
    many = [machine.submit("--hold", "true") for _ in range(3)]
    assert f"It would wait until jobs {','.join(map(str, many))} have finished.\n" in dry("--depends-on", ",".join(map(str, many)))
    nowhere = machine.run("gbatch", "--dry-run", "--depends-on", 99, "true")
    refused = machine.run("gbatch", "--depends-on", 99, "true")
    assert "it depends on job 99, which does not exist" in nowhere.err and (nowhere.err, nowhere.code) == (refused.err, refused.code)
    assert machine.run("gbatch", "--dry-run", "--json", "--depends-on", 99, "true").code == refused.code
    gate.open()


def second_document(machine, *words):
    return json.loads(machine.ok("gbatch", "--dry-run", "--json", *words).splitlines()[1])


def test_dry_run_of_an_array_knows_how_many_may_run_at_once(bare):
    """What of a limit others have, it says, as it is when the jobs are submitted."""
    bare.config("[limits]\nmax_unreserved_per_user = 3\n")
    bare.up()
    gates = [Gate(bare, name) for name in "abc"]
    first = bare.submit("--cpus", 0, "bash", "-c", gates[0].command)
    gates[0].reached()
    array = ("--cpus", 0, "--array", "1-20", "true")
    out = bare.ok("gbatch", "--dry-run", *array)
    limit = "UserLimit: at most 3 of its user's jobs that reserve no GPUs and no CPUs at once"
    assert "\n2 of 20 would start now:\n" in out and f"\nThe others would wait: {limit}.\n" in out, out
    assert "  [3] node" not in out, out
    document = second_document(bare, *array)
    assert len(document["starts"]) == 2 and document["limit"]["kind"] == "user_limit" and document["blockers"] == []
    few = bare.ok("gbatch", "--dry-run", "--cpus", 0, "--array", "1-2", "true")
    assert "\n2 of 2 would start now:\n" in few and "others" not in few, few
    more = [bare.submit("--cpus", 0, "bash", "-c", gate.command) for gate in gates[1:]]
    for gate in gates[1:]:
        gate.reached()
    none = bare.ok("gbatch", "--dry-run", *array)
    assert f"It would wait: {limit}.\n" in none and "room now" not in none and "start now" not in none, none
    few = bare.ok("gbatch", "--dry-run", "--cpus", 1, "--array", "1-5", "--max-concurrent", 1, "true")
    assert "\n1 of 5 would start now:\n" in few and "\nThe others would wait: GroupLimit: at most 1 of group " in few, few
    for gate in gates:
        gate.open()
    bare.wait(first, *more)


def test_what_is_remembered_of_a_users_submissions_is_bounded(bare):
    """Their jobs may be gone: the key is not."""
    bare.config("[limits]\nmax_keys_per_user = 3\n")
    bare.up()
    body = json.dumps({"apiVersion": "gflow/v1", "kind": "Submit", "items": [
        {"spec": {"hold": True, "work_dir": "/"}, "payload": {"argv": ["true"], "environment": []}}]})

    def submit(key):
        answer = ask(bare, "POST", "/api/v1/jobs", body, **({"Idempotency_Key": key} if key else {}))
        return answer.status, json.loads(answer.body)

    for key in ("a", "b", "c"):
        status, told = submit(key)
        assert status == 201, told
        bare.ok("gcancel", told["items"][0]["id"])
    status, told = submit("d")
    assert status == 507 and "limits.max_keys_per_user" in told["detail"], told
    assert submit("a")[1]["items"][0]["id"] == 1  # the same as before
    assert submit(None)[0] == 201
    bare.ok("gctl", "config", "set", "limits.max_keys_per_user", "4")
    assert submit("d")[0] == 201


def test_dry_run_is_refused_as_the_submission_would_be(bare):
    bare.config("[scheduler]\nmax_queued = 3\n[limits]\nmax_queued_per_user = 2\nmax_stored_per_user = '64K'\n")
    bare.up()
    big = bare.work / "big.sh"
    big.write_text("#!/bin/sh\n" + "# much\n" * 20_000)

    def refused(*words):
        dry = bare.run("gbatch", "--dry-run", *words)
        real = bare.run("gbatch", *words)
        assert (dry.code, dry.err) == (real.code, real.err) and real.code != 0, (dry, real)
        return dry.err

    assert "the maximum per user is 2" in refused("--array", "1-3", "true")
    assert "the maximum is 3" in refused("--array", "1-4", "true")
    assert "limits.max_stored_per_user" in refused(str(big))
    bare.submit("--hold", "true")
    assert bare.run("gbatch", "--dry-run", "true").code == 0
    bare.submit("--hold", "true")
    assert "2 jobs of" in refused("true")
    assert len(bare.get("/api/v1/jobs")["jobs"]) == 2


def test_dry_run_that_is_refused_prints_nothing(bare):
    bare.config("[limits]\nmax_queued_per_user = 2\n")
    bare.up()
    for words in (["--array", "1-3"], ["--json", "--array", "1-3"], ["--gpus", "1(V100)"]):
        refused = bare.run("gbatch", "--dry-run", *words, "true")
        assert refused.code != 0 and refused.out == "" and refused.err != "", refused


def test_dry_run_of_an_array_is_a_line(machine):
    out = machine.ok("gbatch", "--dry-run", "--array", "1-1000", "--name", "exp", "--gpus", 1, "true")
    assert out.startswith("Would submit 1000 batch jobs:\n  [1-1000] true (GPUs: 1, task_ids: 1-1000, "), out
    assert "name: exp_[1-1000])\n2 of 1000 would start now:\n" in out, out
    swept = machine.ok("gbatch", "--dry-run", "--param", "x=1:30", "echo", "{x}")
    assert "  [20] echo '20' (" in swept and "echo '21'" not in swept and "\n  ... 10 more\n" in swept, swept


def test_dry_run_says_why_it_would_wait_and_until_when(machine):
    machine.submit("--gpus", 1, "--time", "1:00:00", "sleep", "1000")
    machine.running(1)
    out = machine.ok("gbatch", "--dry-run", "--gpus", "2", "true")
    assert "No node has room for it now: it would wait.\n\nBlocked by:\n   1.  Resources: Need 2 GPUs, only 1 available\n" in out
    assert "job 1 of" in out and "has GPU 0, ends at the latest" in out
    assert "\nExpected start: " in out
    document = json.loads(machine.ok("gbatch", "--dry-run", "--json", "--gpus", "2", "true").splitlines()[1])
    assert [blocker["code"] for blocker in document["blockers"]] == ["Resources"]
    waits = machine.submit("--gpus", 2, "true")
    assert "\nExpected start: " in machine.ok("gjob", "why", waits)


def test_update_changes_what_is_asked_for(machine):
    job = machine.submit("--hold", "--gpus", "2", "true")
    machine.ok("gjob", "update", job, "--gpus", "8G,0.5", "--preemptible")
    shown = machine.job(job)["spec"]
    assert shown["request"]["gpu_share_parts"] == 5000 and shown["request"]["gpu_memory_bytes"] == 8 << 30
    assert shown["preemption"] == "requeue"
    machine.ok("gjob", "update", job, "--gpu-memory", "4G")
    assert "8G" not in machine.ok("gjob", "show", job)
    assert "4G,0.5" in machine.ok("gjob", "show", job)
    machine.ok("gjob", "update", job, "--gpus", "2(3090)", "--clear-gpu-memory-limit")
    request = machine.job(job)["spec"]["request"]
    assert (request["gpus"], request["gpu_share_parts"], request["gpu_models"]) == (2, 10000, ["RTX3090"])
    ran = machine.run("gjob", "update", job, "--gpus", "1.5")
    assert ran.code == 2 and "write 2 or 0.5" in ran.err


def test_directives_of_scripts_take_the_whole_grammar(machine):
    (machine.work / "job.sh").write_text(
        "#!/bin/bash\n# GFLOW --gpus '1（3090）'\n# GFLOW --gpu-memory 8G\n# GFLOW --preemptible\necho $GFLOW_GPUS\n"
    )
    ended = machine.wait(machine.submit("job.sh"))[0]
    assert ended["spec"]["request"]["gpu_models"] == ["RTX3090"] and ended["spec"]["preemption"] == "requeue"
