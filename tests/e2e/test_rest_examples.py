# SPDX-License-Identifier: Apache-2.0
"""The examples of docs/rest.md, typed in: what comes back has the fields that are shown, and what is shown of them."""

import json
import re
from pathlib import Path

import pytest

DOCUMENTS = Path(__file__).parents[2] / "docs"
PAGE = (DOCUMENTS / "rest.md").read_text()

# What is another each time, or measured: there it is one of that kind.
OTHERS = {"owner", "name", "uuid", "timestamp", "expires_at", "MASTER_PORT", "utilization", "gpu_utilization", "gpu_memory_usage",
          "memory_used_gb", "temperature_celsius", "power_watts"}


def section(text, *names):
    return re.search(rf"(?ms)^## (?:{'|'.join(names)})\n(.*?)^## ", text)[1]


def read(text):
    """An example as JSON: what is left out is a member or an item "..."."""
    inside, whole = [], ""
    for token in re.findall(r'"(?:[^"\\]|\\.)*"|\.\.\.|[{}\[\]]|[^"{}\[\].]+|\.', text):
        if token in "{[":
            inside.append(token)
        elif token in "}]":
            inside.pop()
        elif token == "...":
            token = f'"{token}{len(whole)}": 0' if inside[-1] == "{" else f'"{token}"'
        whole += token
    return json.loads(whole)


def steps(text):
    """What is typed, each with the answer that is shown of it: of the block before it, if it has none of its own."""
    typed, found = None, []
    for language, block in re.findall(r"(?ms)^```(bash|json)\n(.*?)^```", text):
        if language == "bash":
            typed = block.replace("\\\n", "")
        else:
            found.append((typed, read(block)))
    return found


def differences(shown, answer, at=""):
    """Where an answer is not as it is shown."""
    if isinstance(shown, dict) and isinstance(answer, dict):
        names = [name for name in shown if not name.startswith("...")]
        is_whole = len(names) == len(answer)
        if names != [name for name in answer if name in names] or is_whole != (len(names) == len(shown)):
            return [f"{at}: {names}{'' if len(names) == len(shown) else ', ...'} is shown of {list(answer)}"]
        return [found for name in names for found in differences(shown[name], answer[name], f"{at}/{name}")]
    if isinstance(shown, list) and isinstance(answer, list):
        rest = shown[-1:] == ["..."]
        items = shown[:-1] if rest else shown
        if len(answer) <= len(items) if rest else len(answer) != len(items):
            return [f"{at}: {len(items)} items are shown of {len(answer)}"]
        return [found for i, item in enumerate(items) for found in differences(item, answer[i], f"{at}/{i}")]
    kinds = [float if type(value) is int else type(value) for value in (shown, answer)]
    same = kinds[0] is kinds[1] and (at.rpartition("/")[2] in OTHERS or shown == answer)
    return [] if same else [f"{at}: {shown!r} is shown of {answer!r}"]


def type_in(machine, line):
    """The answer to a line. Over the socket, where root submits, too."""
    assert line.startswith("curl "), line
    return json.loads(machine.ok("bash", "-c", f"curl -sS --fail --unix-socket '{machine.socket}' {line[5:]}"))


@pytest.mark.parametrize(("shown", "answer", "found"), [
    ('{"a": 1, "b": {"c": null}}', {"a": 1.0, "b": {"c": None}}, []),
    ('{"a": 1}', {"a": 1, "b": 2}, [": ['a'] is shown of ['a', 'b']"]),
    ('{"a": 1, "b": 2}', {"a": 1}, [": ['a', 'b'] is shown of ['a']"]),
    ('{"a": 1, ...}', {"a": 1, "b": 2}, []),
    ('{"b": 2, "a": 1, ...}', {"a": 1, "b": 2, "c": 3}, [": ['b', 'a'], ... is shown of ['a', 'b', 'c']"]),
    ('{"a": 1, ...}', {"a": 1}, [": ['a'], ... is shown of ['a']"]),
    ('{"a": [{"b": 1}]}', {"a": [{"b": 2}]}, ["/a/0/b: 1 is shown of 2"]),
    ('{"a": [1, ...]}', {"a": [1, 2]}, []),
    ('{"a": [1, ...]}', {"a": [1]}, ["/a: 1 items are shown of 1"]),
    ('{"a": [1]}', {"a": [1, 2]}, ["/a: 1 items are shown of 2"]),
    ('{"uuid": "GPU-5ad1..."}', {"uuid": "GPU-832a54e2"}, []),
    ('{"owner": null}', {"owner": "alice"}, ["/owner: None is shown of 'alice'"]),
])
def test_what_is_shown_otherwise_is_found(shown, answer, found):
    assert differences(read(shown), answer) == found


def test_the_documents_show_the_same():
    def blocks(name):
        shown = re.findall(r"(?ms)^```(bash|json)\n(.*?)^```", (DOCUMENTS / name).read_text())
        return [block for language, block in shown if language == "json" or block.startswith("curl ")]

    assert blocks("rest.md") == blocks("rest.zh-CN.md")


@pytest.mark.devices("sim:4xV100")
def test_the_lines_about_gpus_are_answered_as_shown(bare):
    bare.config('[node]\nname = "gpu-node-1"\n')
    bare.up()
    while bare.submit("--hold", "true") < 10:  # the job on the first GPU is job 11, and the allocation 12
        pass
    bare.running(bare.submit("--gpus", "1", "sleep", "1000"))
    bare.ok("gctl", "drain", "gpu", "1", "--reason", "fan is loud")
    asked = steps(section(PAGE, "What there is")) + steps(section(PAGE, "GPUs for a program"))
    shown = {answer["kind"] for _, answer in asked}
    described = bare.get("/api/v1/openapi.json")["paths"]
    answers = {response["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]
               for path, operations in described.items() if path.startswith("/api/v1/gpu/")
               for operation in operations.values() for status, response in operation["responses"].items()
               if status == "200"}
    assert answers - shown == {"GpuAllocations"}, "each is shown, but the list of them"
    for line, answer in asked:
        assert differences(answer, type_in(bare, line)) == [], line


@pytest.mark.devices("sim:1xV100")
def test_the_lines_about_a_job_do_what_is_said(machine):
    about = section(PAGE, "A job")
    holder = machine.submit("--gpus", "1", "sleep", "1000")
    while (last := machine.submit("--hold", "true")) < 6:  # the one that is submitted there is job 7
        assert last > holder
    [(line, answer)] = steps(about)
    assert differences(answer, type_in(machine, line)) == []
    lines = "".join(re.findall(r"(?ms)^```bash\n(.*?)^```", about)).replace("\\\n", "").splitlines()
    for line in lines[1:]:
        if line.endswith("/suspend"):
            machine.ok("gcancel", holder)
            machine.running(7)
        type_in(machine, line)
    job = machine.wait(7)[0]
    assert (job["status"], job["spec"]["priority"]) == ("Cancelled", 5), job
