# SPDX-License-Identifier: Apache-2.0
"""Jobs that gbatch submits to a cluster: what is made there, how they are followed, what becomes of them."""

import json
import re
import urllib.error
import urllib.request

import pytest
from cluster import path_of
from kube_person import Person, grant, make_account
from machine import PATIENCE
from package import ROOT

IMAGE = "registry.example.com/train:1"


@pytest.fixture(scope="session")
def submitters(control_plane, viewers):
    """In two namespaces somebody who may submit there."""
    control_plane.apply(ROOT / "packaging/kubernetes/rbac-submitter.yaml")
    control_plane.make({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "vision"}})
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
