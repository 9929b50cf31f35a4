# SPDX-License-Identifier: Apache-2.0
"""Nothing that may be said of a job is forgotten in Python: neither a field of it nor an option of gbatch."""

import json
import re

from gflow.changes import JobChanges
from gflow.submission import SubmitOptions
from package import ROOT

# The words for fields that have other names.
WORDS = {
    "time_limit_seconds": "time_limit", "grace_seconds": "grace", "work_dir": "cwd",
    "request.gpu_share_parts": "gpus", "request.gpu_share_limit_parts": "gpus", "request.gpu_vendor": "gpus", "request.gpu_models": "gpus",
    "request.see_all": "gpus", "request.gpu_memory_bytes": "gpu_memory", "request.gpu_mode": "shared", "request.memory_bytes": "memory",
    "request.selector": "constraint", "dependencies.jobs": "depends_on", "dependencies.mode": "depends_on_any",
}
NO_WORD = {
    "command": "the command itself",
    "allocation": "gflow.gpus() makes those",
}
# Not of the job but of what is run.
OF_WHAT_IS_RUN = {"env", "inherit_env", "conda_env", "launch", "config"}

OPTIONS = {
    "gpu-model": "gpus", "time": "time_limit", "no-auto-cancel": "auto_cancel", "preemptible": "preemption", "chdir": "cwd",
    "export": "env",
}
NO_OPTION = {
    "nice": "another way to say the priority",
    "wrap": "a command that is text",
    "array": "submit_array()", "param": "map()", "param-file": "map()", "name-template": "of --param",
    "wait": "Job.wait()", "dry-run": "Client.check()", "verbose": "of --dry-run",
    "parsable": "how it is written", "json": "how it is written", "color": "how it is written",
    "server": "gflow.Client(server)", "gflow-config": "which server that is",
    "image": "of jobs in a Kubernetes cluster, where GFLOW_KUBE_IMAGE says it to a program",
    "help": "about gbatch", "version": "about gbatch",
}


def fields_of(schema, within=""):
    """Each that has no others in it, and when it may be changed."""
    for name, field in schema["properties"].items():
        if "properties" in field:
            yield from fields_of(field, f"{within}{name}.")
        else:
            yield f"{within}{name}", field["x-change"]


FIELDS = dict(fields_of(json.loads((ROOT / "docs/format/job.schema.json").read_text())))


def word_of(field):
    return WORDS.get(field, field.rpartition(".")[2])


def test_each_field_of_a_job_has_a_word_or_a_reason_not_to():
    assert not (set(WORDS) | set(NO_WORD)) - set(FIELDS), "these are no fields"
    assert {word_of(field) for field in FIELDS if field not in NO_WORD} | OF_WHAT_IS_RUN == set(SubmitOptions.__annotations__)


def test_each_field_that_may_be_changed_has_the_same_word_then():
    assert {word_of(field) for field, change in FIELDS.items() if change != "never"} == set(JobChanges.__annotations__)


def test_each_option_of_gbatch_has_a_word_or_a_reason_not_to(machine):
    listed = set(re.findall(r"^  (?:-\w, |    )--([a-z-]+)", machine.ok("gbatch", "--help"), re.M))
    assert not (set(OPTIONS) | set(NO_OPTION)) - listed, "these are no options"
    said = {OPTIONS.get(option, option.replace("-", "_")) for option in listed - set(NO_OPTION)}
    assert said <= set(SubmitOptions.__annotations__)
    assert set(SubmitOptions.__annotations__) - said == {"group", "inherit_env"}, "of --array and of --export"
