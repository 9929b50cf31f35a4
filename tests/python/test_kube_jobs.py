# SPDX-License-Identifier: Apache-2.0
"""Jobs that gbatch submits to a cluster: what is made there, how they are followed, what becomes of them."""

import json
import re
import threading
import urllib.error
import urllib.request

import pytest
from between import CONFLICT, LOST, lost_after, status
from cluster import path_of
from kube_person import Person, grant, make_account
from kube_scheduler import until, until_in_force
from machine import PATIENCE
from package import ROOT

IMAGE = "registry.example.com/train:1"


@pytest.fixture(scope="session")
def submitters(control_plane, viewers):
    """In two namespaces somebody who may submit there, and one who may only look."""
    control_plane.apply(ROOT / "packaging/kubernetes/rbac-submitter.yaml")
    control_plane.make({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "vision"}})
    make_account(control_plane, "onlooker")
    grant(control_plane, "gflow-viewer", "onlooker")
    for namespace in ("default", "vision"):
        make_account(control_plane, "submitter", namespace)
        grant(control_plane, "gflow-viewer", "submitter", namespace)
        grant(control_plane, "gflow-submitter", "submitter", namespace, within=namespace)


@pytest.fixture
def submitter(kube, submitters):
    return Person(kube, "submitter")


def jobs_of(kube, namespace="default"):
    return {one["metadata"]["name"]: one for one in kube.ask("GET", path_of("Job", namespace))["items"]}


def only_job(kube, namespace="default"):
    [job] = jobs_of(kube, namespace).values()
    return job


def submit(person, *words, **env):
    """Its number."""
    said = person.says("gbatch", *words, **env)
    return int(re.fullmatch(r"Submitted batch job (\d+)\n", said)[1])


def test_a_script_becomes_a_job(kube, submitter, tmp_path):
    kube.node("v", 2)
    script = tmp_path / "train.sh"
    script.write_text("#!/bin/bash\n# GFLOW --gpus '1(V100)' --time 30\necho $HOME\n")
    number = submit(submitter, "--image", IMAGE, "--name", "Train_1", "--cpus", "2", "--memory", "4G", "--max-retries", "2", "--requeue",
                    "--export", "A=$B", "--chdir", "/work", "--constraint", "disk=ssd", str(script), "--lr", "$X")
    job = only_job(kube)
    assert re.fullmatch(r"train-1-[0-9a-f]{16}", job["metadata"]["name"])
    spec, template = job["spec"], job["spec"]["template"]
    assert (spec["backoffLimit"], spec["parallelism"], spec["completions"], spec["podReplacementPolicy"]) == (2, 1, 1, "Failed")
    assert spec["podFailurePolicy"]["rules"] == [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}]
    assert template["metadata"]["annotations"] == {"gflow/gpu": "1(V100)", "gflow/script": script.read_text()}
    pod = template["spec"]
    assert (pod["schedulerName"], pod["restartPolicy"], pod["activeDeadlineSeconds"]) == ("gflow", "Never", 1800)
    assert pod["nodeSelector"] == {"disk": "ssd"}
    [container] = pod["containers"]
    assert (container["image"], container["workingDir"]) == (IMAGE, "/work")
    assert container["command"] == ["/gflow/script", "--lr", "$$X"]
    told = {one["name"]: one["value"] for one in container["env"]}
    assert told == {"A": "$$B", "GFLOW_KUBE_IMAGE": IMAGE, "GFLOW_JOB_NAME": "Train_1"}
    assert container["resources"]["limits"] == {"cpu": "2", "memory": str(4 << 30), "nvidia.com/gpu": "1"}
    shown = submitter.queue()["default/Train_1"]
    assert (shown["id"], shown["status"], shown["spec"]["request"]["gpus"]) == (number, "Queued", 1)
    assert shown["spec"]["command"].endswith("train.sh --lr '$X'") and shown["spec"]["time_limit_seconds"] == 1800
    assert "waiting" in submitter.says("gjob", "why", "Train_1")


@pytest.mark.parametrize(("words", "instead"), [
    (("--depends-on", "7"), "gjob wait JOB && gbatch"), (("--begin", "2h"), "CronJob"), (("--priority", "50"), "PriorityClasses"),
    (("--preemptible",), "--requeue"), (("--gpus", "-1"), "ask for some"), (("--nodes", "2"), "gang"), (("--array", "1-3%2"), "--max-concurrent"), (("--array", "1-10001"), "more than 10000"),
    (("--conda-env", "base"), "image"), (("--launch", "ddp"), "torchrun"), (("--chdir", "here"), "absolute path in the container"),
])
def test_what_cannot_be_is_refused_with_what_can(kube, submitter, words, instead):
    refused = submitter.run("gbatch", "--image", IMAGE, *words, "sleep", "1", ok=False)
    assert instead in refused.stderr, refused.stderr
    assert jobs_of(kube) == {}


def test_where_the_image_is_from(kube, submitter):
    none = submitter.run("gbatch", "sleep", "1", ok=False)
    assert "--image IMAGE" in none.stderr and "GFLOW_KUBE_IMAGE" in none.stderr and none.returncode == 2
    submit(submitter, "sleep", "1", GFLOW_KUBE_IMAGE="of-all")
    assert only_job(kube)["spec"]["template"]["spec"]["containers"][0]["image"] == "of-all"


def test_one_on_hold_does_not_start(kube, submitter):
    submit(submitter, "--image", IMAGE, "--hold", "--name", "held", "true")
    assert only_job(kube)["spec"]["suspend"] and submitter.queue()["default/held"]["status"] == "Hold"


def test_a_task_of_an_array_is_a_job(kube, submitter):
    said = submitter.says("gbatch", "--image", IMAGE, "--name", "sweep", "--array", "2,4-5", "--gpus", "1", "train")
    numbers = [int(number) for number in re.findall(r"Submitted batch job (\d+)\n", said)]
    shown = submitter.queue()
    assert [shown[f"default/sweep_{task}"]["id"] for task in (2, 4, 5)] == numbers
    told = [{one["name"]: one["value"] for one in job["spec"]["template"]["spec"]["containers"][0]["env"]} for job in jobs_of(kube).values()]
    assert {env["GFLOW_JOB_NAME"]: env["GFLOW_ARRAY_TASK_ID"] for env in told} == {f"sweep_{task}": str(task) for task in (2, 4, 5)}
    assert {(env["GFLOW_ARRAY_TASK_COUNT"], env["GFLOW_ARRAY_TASK_MIN"], env["GFLOW_ARRAY_TASK_MAX"]) for env in told} == {("3", "2", "5")}
    [group] = {one["spec"]["group"] for one in shown.values()}
    submitter.says("gcancel", "--group", group)


def test_waiting_ones_are_held_and_released(kube, submitter):
    numbers = [submit(submitter, "--image", IMAGE, "--name", name, "true") for name in "ab"]
    assert sorted(submitter.says("gjob", "hold", "a", "b").splitlines()) == [f"Job {number} put on hold." for number in sorted(numbers)]
    assert [one["status"] for one in submitter.queue().values()] == ["Hold", "Hold"]
    assert "no begin time" in submitter.run("gjob", "release", "--at", "2h", "a", ok=False).stderr
    submitter.says("gjob", "release", "a")
    assert {name: one["status"] for name, one in submitter.queue().items()} == {"default/a": "Queued", "default/b": "Hold"}
    assert "it is not on hold" in submitter.run("gjob", "release", "a", ok=False).stderr
    assert [job["spec"]["suspend"] for name, job in sorted(jobs_of(kube).items())] == [False, True]


def test_what_cannot_be_held_says_why(kube, submitter):
    kube.make({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "alone", "namespace": "default"},
               "spec": {"schedulerName": "gflow", "containers": [{"name": "main", "image": "none"}]}})
    assert "gbatch did not make" in submitter.run("gjob", "hold", "alone", ok=False).stderr


def test_a_pod_that_would_come_again_is_not_cancelled(kube, submitter):
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "1", "controller": True}
    for name, owners in (("web-1", [owner]), ("alone", [])):
        kube.make({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default", "ownerReferences": owners},
                   "spec": {"schedulerName": "gflow", "containers": [{"name": "main", "image": "none"}]}})
    assert "ReplicaSet web" in submitter.run("gcancel", "web-1", ok=False).stderr
    submitter.says("gcancel", "alone")
    until(kube, lambda pods: "alone" not in pods or "deletionTimestamp" in pods["alone"]["metadata"])
    assert "deletionTimestamp" not in kube.ask("GET", f"{path_of('Pod', 'default')}/web-1")["metadata"]


def test_a_part_of_a_gpu(kube, submitter):
    kube.node("v", 4)
    submit(submitter, "--image", IMAGE, "--gpus", "8G,0.5", "serve")
    pod = only_job(kube)["spec"]["template"]
    assert pod["metadata"]["annotations"]["gflow/gpu"] == "8G,0.5" and pod["spec"]["containers"][0]["resources"] == {}
    kube.ask("PATCH", f"{path_of('Node')}/v/status", {"status": {"allocatable": {"gflow/allocation": "256"}, "capacity": {"gflow/allocation": "256"}}})
    submit(submitter, "--image", IMAGE, "--gpus", "8G,0.5", "--name", "second", "serve")
    [second] = [job for name, job in jobs_of(kube).items() if name.startswith("second-")]
    assert second["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"] == {"gflow/allocation": "1"}


def post(url, body, key):
    asked = urllib.request.Request(f"{url}/api/v1/jobs", method="POST", data=json.dumps(body).encode(),
                                   headers={"Content-Type": "application/json", "Idempotency-Key": key})
    with urllib.request.urlopen(asked, timeout=PATIENCE) as answer:
        return [item["id"] for item in json.loads(answer.read())["items"]]


def submission(*names):
    return {"items": [{"spec": {"work_dir": "/", "name": name}, "payload": {"argv": ["true"], "environment": [f"GFLOW_KUBE_IMAGE={IMAGE}"]}} for name in names]}


def test_what_is_submitted_again_is_there_once(kube, submitter):
    """By servers that know nothing of each other: the one that was asked first has died meanwhile."""
    body = submission("a", "b")
    answers = []
    for _ in range(2):
        with submitter.serves() as url:
            answers.append(post(url, body, "once"))
    assert answers[0] == answers[1] and len(jobs_of(kube)) == 2
    with submitter.serves() as url, pytest.raises(urllib.error.HTTPError) as refused:
        post(url, {"items": body["items"][:1]}, "once")
    assert refused.value.code == 422 and "Idempotency-Key" in json.loads(refused.value.read())["detail"]


@pytest.fixture
def behind(kube, submitters, between):
    """One whose API server is behind the proxy."""
    return Person(kube, config=kube.kubeconfig(kube.token("submitter", "default"), "behind", server=between.url))


def test_what_went_while_nobody_was_told_is_not_shown(kube, behind, between):
    """A job that no watch and no list ever named: made, and deleted before the list that follows a gap in the watch."""
    first, go, again = threading.Event(), threading.Event(), threading.Event()

    def watch(path):
        if not path.startswith("/apis/batch/v1/jobs"):
            return None
        if first.is_set():
            again.set()
            return None
        first.set()
        assert go.wait(PATIENCE)
        return status(410, "too old resource version")

    def shown(url):
        with urllib.request.urlopen(f"{url}/api/v1/jobs", timeout=PATIENCE) as answer:
            return sorted(job["spec"]["name"] for job in json.loads(answer.read())["jobs"])

    between.watch_hook = watch
    try:
        with behind.serves() as url:
            assert first.wait(PATIENCE)
            post(url, submission("stays", "goes"), "two")
            assert shown(url) == ["goes", "stays"]
            [goes] = [name for name in jobs_of(kube) if name.startswith("goes-")]
            kube.ask("DELETE", f"{path_of('Job', 'default')}/{goes}?propagationPolicy=Background")
            go.set()
            assert again.wait(PATIENCE)
            until_in_force(lambda: shown(url) == ["stays"])
    finally:
        go.set()


def is_of_jobs(verb):
    return lambda method, path: method == verb and path.startswith(path_of("Job", "default"))


@pytest.mark.parametrize("how", [lost_after, lambda forward: LOST, lambda forward: CONFLICT])
def test_a_job_is_made_and_removed_once_whatever_becomes_of_an_answer(kube, behind, between, how):
    """A conflict is no word of whether it is there: somebody changes a quota, or the Job, just then."""
    done = between.once(is_of_jobs("POST"), how)
    number = submit(behind, "--image", IMAGE, "--wrap", "true")
    assert done and len(jobs_of(kube)) == 1
    done = between.once(is_of_jobs("DELETE"), how)
    behind.says("gcancel", str(number))
    assert done and "deletionTimestamp" in only_job(kube)["metadata"]


def test_who_may_submit_where(kube, submitters):
    here, there = Person(kube, "submitter"), Person(kube, "submitter", namespace="vision")
    submit(here, "--image", IMAGE, "--name", "a", "true")
    submit(there, "--image", IMAGE, "--name", "a", "true")
    assert here.queue("--me").keys() == {"default/a"} and there.queue("--me").keys() == {"vision/a"}
    for words in (("gcancel", "vision/a"), ("gjob", "log", "vision/a")):
        refused = here.run(*words, ok=False)
        assert refused.returncode != 0, words
    assert "rbac-submitter.yaml" in here.run("gcancel", "vision/a", ok=False).stderr
    looks = Person(kube, "onlooker").run("gbatch", "--image", IMAGE, "true", ok=False)
    assert looks.returncode == 5 and "rbac-submitter.yaml" in looks.stderr
    there.says("gcancel", "a")
    assert "being deleted" in there.queue()["vision/a"]["reason"], "nothing is here that takes away what is deleted"
    kube.ask("DELETE", f"{path_of('Job', 'vision')}?propagationPolicy=Background")


def test_a_long_array_is_heard_of_meanwhile(kube, submitter):
    """What is over a quota is refused; of the others the numbers are known."""
    kube.make({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "few", "namespace": "default"}, "spec": {"hard": {"count/jobs.batch": "60"}}})
    try:
        def has_counted():
            return "hard" in kube.ask("GET", f"{path_of('ResourceQuota', 'default')}/few").get("status", {})

        kube.start_controllers("resourcequota")
        until_in_force(has_counted)
        refused = submitter.run("gbatch", "--image", IMAGE, "--array", "1-120", "true", ok=False)
        numbers = refused.stdout.count("Submitted batch job")
        assert refused.returncode != 0 and numbers == 50 and len(jobs_of(kube)) == 60, refused.stderr
        assert "10 of 50 jobs are submitted" in refused.stderr and "exceeded quota" in refused.stderr and "rbac" not in refused.stderr
        [group] = {one["spec"]["group"] for one in submitter.queue().values()}
        assert group in refused.stderr
    finally:
        kube.stop_controllers()
        kube.ask("DELETE", f"{path_of('ResourceQuota', 'default')}/few")


@pytest.fixture
def controllers(kube):
    kube.start_controllers("job", "garbagecollector", "ttl-after-finished")
    yield
    kube.stop_controllers()


@pytest.fixture
def runs(node, controllers, start, submitter):
    """A node that runs what is submitted."""
    start()
    return submitter


def test_a_script_from_its_submission_to_its_end(kube, runs, tmp_path):
    script = tmp_path / "train.sh"
    script.write_text('echo "$0 $1 $A"; exec 2>&1; echo more >&2; cat "$GFLOW_JOB_CONFIG"; exit 3\n')
    config = tmp_path / "a.toml"
    config.write_text("lr = 1\n")
    number = submit(runs, "--image", "host", "--name", "train", "--export", "A=$B", "--config", str(config), "--cpus", "0", str(script), "$HOME")
    waited = runs.run("gjob", "wait", str(number), ok=False)
    assert waited.returncode == 3, (waited.stdout, waited.stderr)
    shown = runs.queue("-a")["default/train"]
    assert (shown["id"], shown["status"], shown["outcome"]["exit_code"]) == (number, "Failed", 3)
    assert runs.says("gjob", "log", "train") == "/gflow/script $HOME $B\nmore\nlr = 1\n"
    assert runs.says("gjob", "log", "--last", "1", "train") == "lr = 1\n"
    assert "already ended" in runs.run("gcancel", "train", ok=False).stderr


def test_it_has_one_number_and_is_followed_and_cancelled(kube, runs):
    number = submit(runs, "--image", "host", "--cpus", "0", "--name", "long", "--grace", "1s", "sh", "-c", "echo begun; while :; do sleep 0.1; done")
    follow = runs.begins("gjob", "log", "--follow", str(number))
    assert follow.stdout.readline() == "begun\n"
    shown = runs.queue()["default/long"]
    assert (shown["id"], shown["status"], shown["node"]) == (number, "Running", "node")
    assert "only a waiting job can be held" in runs.run("gjob", "hold", "long", ok=False).stderr
    runs.says("gcancel", "long")
    assert follow.wait(PATIENCE) == 0
    until(kube, lambda jobs: not jobs, kind="Job")
    assert runs.queue("-a") == {}


def test_a_time_limit_and_the_wait_of_its_submission(kube, runs):
    done = runs.run("gbatch", "--image", "host", "--cpus", "0", "--wait", "true")
    assert done.stdout.startswith("Submitted batch job")
    late = submit(runs, "--image", "host", "--cpus", "0", "--time", "0:01", "--grace", "0", "--name", "late", "sleep", "600")
    assert runs.run("gjob", "wait", str(late), ok=False).returncode != 0
    assert runs.queue("-a")["default/late"]["status"] == "Timeout"


def test_one_released_runs(kube, runs):
    number = submit(runs, "--image", "host", "--cpus", "0", "--hold", "true")
    runs.says("gjob", "release", str(number))
    runs.says("gjob", "wait", str(number))


def test_one_whose_pod_waits_is_held(kube, runs):
    submit(runs, "--image", "host", "--cpus", "0", "--gpus", "1", "--name", "much", "true")
    until(kube, lambda pods: pods)
    runs.says("gjob", "hold", "much")
    assert runs.queue()["default/much"]["status"] == "Hold"
    until(kube, lambda pods: not pods)
    assert runs.queue()["default/much"]["status"] == "Hold"


def test_the_end_is_that_of_its_own_container(kube, runs):
    """A mesh puts another one beside it, and the kubelet tells of them by name."""
    submit(runs, "--image", "host", "--cpus", "0", "--name", "alone", "--hold", "sh", "-c", "echo of main; exit 3")
    template = only_job(kube)["spec"]["template"]
    template["metadata"]["labels"] = {"gflow/submitted": "true"}  # those of the Job controller are of the other
    template["spec"]["containers"].append({**template["spec"]["containers"][0], "name": "a-proxy", "command": ["sh", "-c", "echo of proxy"]})
    kube.make({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "meshed", "namespace": "default", "labels": {"gflow/submitted": "true"}},
               "spec": {"backoffLimit": 0, "template": template}})
    number = str(runs.queue("-a")["default/meshed"]["id"])
    assert runs.run("gjob", "wait", number, ok=False).returncode == 3
    assert runs.says("gjob", "log", number) == "of main\n"
    assert runs.says("gjob", "log", "--follow", number) == "of main\n"


def test_a_log_that_never_comes_is_not_waited_for(kube, runs):
    number = submit(runs, "--image", "host", "--cpus", "0", "--gpus", "1", "--name", "much", "true")
    pods = until(kube, lambda pods: pods)
    follow = runs.begins("gjob", "log", "--follow", str(number))
    [pod] = pods
    kube.ask("PATCH", f"{path_of('Pod', 'default')}/{pod}/status", {"status": {"phase": "Failed", "reason": "Evicted"}})
    assert follow.wait(PATIENCE) is not None


def test_a_variable_that_is_empty_goes_along(kube, submitter):
    submit(submitter, "--image", IMAGE, "--export", "NOTHING,ABSENT", "true", NOTHING="")
    env = only_job(kube)["spec"]["template"]["spec"]["containers"][0]["env"]
    assert [one.get("value", "") for one in env if one["name"] == "NOTHING"] == [""] and all(one["name"] != "ABSENT" for one in env)
