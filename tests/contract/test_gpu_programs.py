# SPDX-License-Identifier: Apache-2.0
"""Programs of others, unmodified, on the fake driver: what they get is the same with the interposer, until their limit.

NVIDIA's bindings and numba-cuda find the driver by cuGetProcAddress, tinygrad by ctypes."""

import subprocess
import sys
from pathlib import Path

import pytest
from pypi import PROGRAMS, needed

sys.path.insert(0, str(Path(__file__).parents[1] / "e2e"))

from fake_gpu import GIB, INTERPOSER, UUIDS, Account, Gpus  # noqa: E402

BINDINGS = """
from cuda.bindings import driver as d

def got(answer):
    assert answer[0] == 0, answer
    return answer[1] if len(answer) == 2 else answer[1:]

got(d.cuInit(0))
device = got(d.cuDeviceGet(0))
context = got(d.cuDevicePrimaryCtxRetain(device))
got(d.cuCtxSetCurrent(context))
print(got(d.cuDeviceGetCount()), got(d.cuDeviceTotalMem(device)) >> 30, got(d.cuMemGetInfo())[1] >> 30)
held = []
while (answer := d.cuMemAlloc(1 << 30))[0] == 0:
    held.append(answer[1])
print(len(held), answer[0].name)
for pointer in held:
    got(d.cuMemFree(pointer))
stream = got(d.cuStreamCreate(0))
held = []
while (answer := d.cuMemAllocAsync(1 << 30, stream))[0] == 0:
    held.append(answer[1])
print(len(held), answer[0].name)
"""

NUMBA = """
import numpy
from numba import cuda

print(len(cuda.gpus), cuda.current_context().get_memory_info().total >> 30)
for _ in range(2):
    held = []
    try:
        while True:
            held.append(cuda.device_array(1 << 30, numpy.uint8))
    except Exception as error:
        print(len(held), "CUDA_ERROR_OUT_OF_MEMORY" in str(error))
    del held
    cuda.current_context().deallocations.clear()
"""

TINYGRAD = """
from tinygrad import Device, Tensor, dtypes

for _ in range(2):
    held = []
    try:
        while True:
            held.append(Tensor.zeros(1 << 30, dtype=dtypes.uint8, device="CUDA").contiguous().realize())
    except MemoryError as error:
        print(len(held), error)
    print(held[0].shape, Device["CUDA"].count())
    del held
    Device["CUDA"].allocator.free_cache()
"""

# What each says of a GPU of 16 GiB, less the 300 MiB of a context, and of a slice of 8.
SAID = {
    BINDINGS: ("2 16 16\n15 CUDA_ERROR_OUT_OF_MEMORY\n15 CUDA_ERROR_OUT_OF_MEMORY\n", {"16 16": "8 8", "15 ": "8 "}),
    NUMBA: ("2 16\n15 True\n15 True\n", {"2 16": "2 8", "15 ": "8 "}),
    TINYGRAD: (
        "15 Allocation of 1.00 GB failed on CUDA. Used: 15.00 GB\n(1073741824,) 2\n" * 2,
        {"15 A": "8 A", "15.00": "8.00"},
    ),
}


@pytest.mark.parametrize("script", SAID, ids=["bindings", "numba", "tinygrad"])
def test_programs_get_what_there_is_and_then_what_is_theirs(tmp_path, script):
    python = needed(PROGRAMS / "python", "python")
    modules = "from cuda.bindings import driver; import numba_cuda, tinygrad"
    if subprocess.run([python, "-c", modules], capture_output=True, check=False).returncode != 0:
        needed(PROGRAMS / "none", "numba-cuda or tinygrad")
    gpus, account = Gpus(tmp_path), Account(tmp_path / "share", {UUIDS[0]: 8 * GIB})
    plain = gpus.environment | {"HOME": str(tmp_path), "DEV": "CUDA:PTX", "CACHELEVEL": "0"}
    limited = plain | {"LD_PRELOAD": str(INTERPOSER), "GFLOW_SHARE_DIR": str(account.folder)}

    def said_with(environment):
        done = subprocess.run(
            [python, "-W", "ignore", "-c", script], env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    expected, changes = SAID[script]
    assert said_with(plain) == expected
    whole = Account(tmp_path / "whole", {})
    with whole.lent_until_wanted():
        assert said_with(plain | {"LD_PRELOAD": str(INTERPOSER), "GFLOW_SHARE_DIR": str(whole.folder)}) == expected
    assert len(whole.processes()) == 1
    for before, after in changes.items():
        expected = expected.replace(before, after)
    assert said_with(limited) == expected
    assert account.amounts()[1:] != (0, 0) and account.amounts()[1] == 8 * GIB
