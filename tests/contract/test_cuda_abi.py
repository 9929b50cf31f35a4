# SPDX-License-Identifier: Apache-2.0
"""What gflow declares of CUDA and NVML, against NVIDIA's own headers (of PyPI, installed by `./dev setup`)."""

import re
import subprocess
from pathlib import Path

from pypi import PROGRAMS, needed

ROOT = Path(__file__).parents[2]
CHECK = Path(__file__).with_name("cuda_abi_check.cpp")


def header_folder(package, header):
    found = list(PROGRAMS.parent.glob(f"lib/python3*/site-packages/nvidia/{package}/include"))
    return needed((found or [PROGRAMS / "none"])[0] / header, f"nvidia/{package}").parent


def declared_calls():
    return re.findall(r"using (cu\w+) = Result\(", (ROOT / "src/cuda/abi.h").read_text())


def compile_check(folder, calls):
    includes = [header_folder("cu13", "cuda.h"), header_folder("nvml_dev", "nvml.h")]
    source = folder / "check.cpp"
    lines = "\n".join(f"CHECK({name})" for name in calls)
    source.write_text(CHECK.read_text().replace("\nCALLS\n", f"\n{lines}\n"))
    return subprocess.run(
        ["g++", "-std=c++23", "-fsyntax-only", f"-I{ROOT}/src", *(f"-isystem{path}" for path in includes), source],
        capture_output=True,
        text=True,
        check=False,
    )


def test_declarations_are_nvidias(tmp_path):
    calls = declared_calls()
    assert "cuMemAlloc_v2" in calls
    done = compile_check(tmp_path, calls)
    assert done.returncode == 0, done.stderr


def test_a_declaration_of_nothing_is_found(tmp_path):
    done = compile_check(tmp_path, ["cuNoSuchFunction"])
    assert "cuNoSuchFunction" in done.stderr and done.returncode != 0


def hooked_names():
    return set(re.findall(r"X\((cu\w+), cu", (ROOT / "src/interpose/real.h").read_text().split("GFLOW_CUDA_CALLS")[0]))


# Of before CUDA 3.2, with sizes of 32 bits, which no program of 64 bits is made with.
OF_32_BITS = {"cuArray3DCreate", "cuArrayCreate", "cuDeviceTotalMem", "cuMemAllocPitch", "cuMemGetInfo"}


def test_every_version_of_a_hooked_function_is_hooked():
    """What a driver answers with is that of the newest version the program knows: one without a hook is not limited."""
    hooks = hooked_names()
    header = (header_folder("cu13", "cuda.h") / "cuda.h").read_text()
    declared = set(re.findall(r"CUresult CUDAAPI (cu\w+)\(", header))
    assert "cuCtxSynchronize_v2" in declared

    def base(name):
        return re.sub(r"(_v\d+)?(_ptsz)?$", "", name)

    hooked = {base(name) for name in hooks}
    assert {name for name in declared if base(name) in hooked} - hooks == OF_32_BITS


def exported_names():
    """What a driver of these headers exports, also for a default stream of each thread."""
    folder = header_folder("cu13", "cuda.h")
    names = set()
    for options in ([], ["-D__CUDA_API_VERSION_INTERNAL"], ["-DCUDA_API_PER_THREAD_DEFAULT_STREAM"]):
        header = folder / "cuda.h"
        done = subprocess.run(["g++", "-E", "-P", "-x", "c++", *options, header], capture_output=True, text=True, check=True)
        names |= set(re.findall(r"(?<!inline )\bCUresult\s+(cu[A-Z]\w*)\s*\(", done.stdout))
    for header in ("cudaGL.h", "cudaEGL.h"):
        names |= set(re.findall(r"CUresult CUDAAPI (cu[A-Z]\w*)\s*\(", (folder / header).read_text()))
    of_any_version = {re.sub(r"_v\d+(?=(_pt[ds][sz])?$)", "", name) for name in names}
    for header in ("cudaTypedefs.h", "cudaGLTypedefs.h", "cudaEGLTypedefs.h", "cudaProfilerTypedefs.h"):
        types = re.findall(r"CUDAAPI \*PFN_(cu[A-Z]\w*?)_v\d{4,5}(_pt[ds][sz])?\)", (folder / header).read_text())
        names |= {name + suffix for name, suffix in types} - of_any_version
    return names - {"cuWGLGetDevice"}  # of Windows


def test_every_function_of_the_driver_can_tell_that_it_is_wanted():
    """A program that calls one without a stub while its GPU is lent waits for it for good."""
    listed = re.findall(r"X\((cu\w+)\)", (ROOT / "src/interpose/driver_names.h").read_text())
    names = {name for name in exported_names() if not name.startswith("cuCheckpointProcess")}
    assert {"cuMemcpyDtoH_v2_ptds", "cuStreamQuery_ptsz", "cuMemcpy", "cuGLMapBufferObject_ptds", "cuProfilerStart"} <= names
    assert len(listed) == len(set(listed)) > 600 and not set(listed) & hooked_names()
    assert names - {*listed, *hooked_names()} == set()
