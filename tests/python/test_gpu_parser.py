# SPDX-License-Identifier: Apache-2.0
"""Requests for GPUs, read in this process by the daemon's own grammar."""

import copy
import pickle
import subprocess
import sys
import warnings

import gflow
import pytest
import wheels
from gflow import GPUResource, GPUResourceParser, GPUResourceWarning, RequestError

pytestmark = pytest.mark.usefixtures("native")

NVIDIA = "nvidia.com/gpu"


@pytest.fixture
def parser():
    return GPUResourceParser()


@pytest.mark.parametrize(("text", "read"), [
    ("2", (2, None, NVIDIA, None, None)),
    ("0", (0, None, NVIDIA, None, None)),
    ("-1", (-1, None, NVIDIA, None, None)),
    ("0.5", (0.5, None, NVIDIA, None, 0.5)),
    ("0.25", (0.25, None, NVIDIA, None, 0.25)),
    ("2(V100)", (2, "V100", NVIDIA, None, None)),
    ("4(A100)", (4, "A100", NVIDIA, None, None)),
    ("1(nvidia,V100)", (1, "V100", NVIDIA, None, None)),
    ("2（V100）", (2, "V100", NVIDIA, None, None)),
    ("1(a100-80gb|h100)", (1, "A100-80G|H100", NVIDIA, None, None)),
    ("8G,0.5", (0.5, None, NVIDIA, 8.0, 0.5)),
    ("16G,0.75", (0.75, None, NVIDIA, 16.0, 0.75)),
    ("512M,0.1", (0.1, None, NVIDIA, 0.5, 0.1)),
    ("2(A100),40G", (2, "A100", NVIDIA, 40.0, None)),
    ("2x0.5", (1.0, None, NVIDIA, None, 0.5)),
    ("1(amd)", (1, None, "amd.com/gpu", None, None)),
    ("1(MI300X)", (1, "MI300X", "amd.com/gpu", None, None)),
    ("1(npu,910B)", (1, "910B", "huawei.com/npu", None, None)),
])
def test_a_request_is_read(parser, text, read):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert parser.parse_gpu_resource(text) == parser.parse(text) == GPUResource(*read)
    assert isinstance(parser.parse(text).gpu_num, type(read[0]))


@pytest.mark.parametrize(("text", "begin", "end", "what", "instead"), [
    ("", 0, 0, "a value is missing here", "write 0 for a job without GPUs"),
    ("1.5", 0, 3, "a job has whole GPUs or a part of one", "write 2 or 0.5"),
    ("2（nvdia）", 2, 7, "'nvdia' is neither a vendor nor a model of GPUs", "did you mean nvidia?"),
    ("invalid", 0, 7, "'invalid' is neither a number of GPUs nor an amount of memory", "write 2, 0.5, 2(V100) or 8G,0.5"),
    ("2\ud800", 1, 2, "'?' does not belong here", "the GPU model goes in brackets, 2(V100), and memory needs K, M, G or T"),
    ("2(V100),显存", 8, 10, None, None),
])
def test_what_is_no_request_says_where(parser, text, begin, end, what, instead):
    with pytest.raises(RequestError) as caught:
        parser.parse(text)
    error = caught.value
    if what is None:
        what, instead, end = error.what, error.instead, error.end
    assert (error.text, error.begin, error.end, error.what, error.instead) == (text, begin, end, what, instead)
    assert str(error).startswith(f"{text!r}, column {begin + 1}: {what}")
    assert isinstance(error, ValueError) and isinstance(error, gflow.GflowError)
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
    with pytest.warns(GPUResourceWarning, match="taken for 0 GPUs"):
        assert parser.parse_gpu_resource(text) == GPUResource(0, None, NVIDIA)


@pytest.mark.parametrize("nothing", [None, 2, 0.5, b"2", ["2"]])
def test_what_is_no_text(parser, nothing):
    with pytest.raises(TypeError, match="is a text such as"):
        parser.parse(nothing)
    with pytest.warns(GPUResourceWarning):
        assert parser.parse_gpu_resource(nothing).gpu_num == 0


class _Unshown:
    def __repr__(self):
        raise RuntimeError("not shown")


@pytest.mark.parametrize("much", ["x" * 10**6, "1" * 10**6, "2(" + "A|" * 10**5, b"2" * 10**6, _Unshown()], ids=["x", "1", "A|", "bytes", "unshown"])
def test_what_is_wrong_is_said_in_few_words(parser, much):
    with pytest.warns(GPUResourceWarning, match="taken for 0 GPUs: ") as told:
        assert parser.parse_gpu_resource(much).gpu_num == 0
    assert len(str(told[0].message)) < 500
    with pytest.raises((RequestError, TypeError)) as wrong:
        parser.parse(much)
    assert getattr(wrong.value, "text", much) is much


def program(script):
    """What it wrote, to its errors, too."""
    done = subprocess.run([sys.executable, "-c", script], env={"PYTHONPATH": str(wheels.package())}, capture_output=True, text=True,
                          timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def test_a_program_ends_without_a_word_though_a_thread_still_reads():
    assert program("""
import gflow, threading
begun = threading.Event()
def reads():
    parser = gflow.GPUResourceParser()
    while True:
        parser.parse("2(V100)")
        begun.set()
threading.Thread(target=reads, daemon=True).start()
begun.wait()
""") == ""


def test_a_subinterpreter_is_refused_and_takes_nothing_from_the_first():
    said = program("""
import importlib, gflow
for name in ("_interpreters", "_xxsubinterpreters"):
    try:
        them = importlib.import_module(name)
        break
    except ImportError:
        pass
parser = gflow.GPUResourceParser()
try:  # as embedding programs make them: with what is shared of the process
    other = them.create("legacy")
except TypeError:
    other = them.create(isolated=False)
try:
    failed = them.run_string(other, "import gflow; gflow.GPUResourceParser()")
except them.RunFailedError as error:
    failed = error
print(failed)
them.destroy(other)
print(parser.parse("2(V100)").gpu_num)
""")
    assert "this is a subinterpreter" in said and said.endswith("\n2\n")


def test_the_warning_is_where_it_was_called(parser):
    with pytest.warns(GPUResourceWarning) as told:
        parser.parse_gpu_resource("two")
    assert told[0].filename == __file__


@pytest.mark.parametrize(("request_text", "gb", "enough"), [
    ("1(V100)", 16, True), ("1(V100)", 32, True), ("1(V100)", 64, False), ("2(V100)", 64, True), ("0.5(V100)", 17, False),
    ("1(V100|A100)", 40, False), ("1(A100-40G)", 41, False), ("8G,0.5", 8, True), ("8G,0.5", 8.5, False),
    ("2(A100),40G", 80, True), ("2", 1000, True), ("0", 1, False), ("1(X9999)", 1000, True), ("1(H100)", 0, True),
])
def test_memory(parser, request_text, gb, enough):
    assert parser.validate_gpu_memory(parser.parse(request_text), gb) is enough


@pytest.mark.parametrize("gb", [-1, float("nan"), float("inf"), "much"])
def test_an_amount_of_memory_that_is_none(parser, gb):
    with pytest.raises(ValueError):
        parser.validate_gpu_memory(parser.parse("1(V100)"), gb)


def test_names_and_memory_of_gpu_config():
    """The keys of gpu_config.yaml, in letters of either case."""
    config = {
        "GPU_RESOURCE": {"nvidia": "example.com/gpu", "fpga": "example.com/fpga"},
        "DEFAULT_GPU_RESOURCE_NAME": "example.com/any",
        "gpu_memory_specs": {"V100": 16, "X9999": 5},
    }
    parser = GPUResourceParser(config)
    for one in (parser, copy.deepcopy(parser), pickle.loads(pickle.dumps(parser))):
        assert one.parse("1").resource_name == "example.com/any"
        assert one.parse("1(V100)").resource_name == "example.com/gpu"
        assert one.parse("1(fpga)").resource_name == "example.com/fpga"
        assert one.parse("1", "given.com/gpu").resource_name == "given.com/gpu"
        assert not one.validate_gpu_memory(one.parse("1(V100)"), 17)
        assert not one.validate_gpu_memory(one.parse("1(X9999)"), 6)
    parser.gpu_memory_mapping["X9999"] = 7
    assert parser.validate_gpu_memory(parser.parse("1(X9999)"), 7)


def test_memory_of_models_as_people_write_them():
    parser = GPUResourceParser({"gpu_memory_specs": {"v100": "16", "RTX 3090": 20, "a100-40g": 39.5, "Card": 5}})
    assert [parser.memory_of(one) for one in ("V100", "RTX3090", "A100-40G", "Card")] == [16.0, 20.0, 39.5, 5.0]
    for wrong in ("16G", None, -1, float("nan")):
        with pytest.raises(ValueError, match="gpu_memory_specs: V100: .* is not an amount"):
            GPUResourceParser({"gpu_memory_specs": {"V100": wrong}})


def test_it_reads_as_the_daemon_does(parser, client):
    """One grammar: what gflowd understands of a text, and what it says of a mistake, is what is read here."""
    for text in ("2(A100),40G", "8G,0.5", "0.3333(v100)", "gpu:v100:2", "2x0.5"):
        told, read = client.validate(gpus=text), parser.parse(text)
        assert parser.parse(told["request"]) == read, told
    for text in ("1.5", "2(nvdia)", "8G"):
        told = client.validate(gpus=text)
        with pytest.raises(RequestError) as caught:
            parser.parse(text)
        assert not told["valid"] and caught.value.what in told["error_message"]
