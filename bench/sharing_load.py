#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What people's programs do to a GPU, for sharing_bench.py: run as a job, prints one JSON object a line.

    sharing_load.py smoke                      what PyTorch sees, and the digest of a product
    sharing_load.py memory                     up to the limit and over it, and on afterwards
    sharing_load.py rates SECONDS LIMIT,...    units of each workload per second, under each limit in turn
    sharing_load.py pair FOLDER N SECONDS NAME units of one workload in the same seconds as N - 1 others
    sharing_load.py gang FOLDER N SECONDS      a process for each GPU, with an all-reduce in each step, beside N - 1 others
    sharing_load.py latency FOLDER N SECONDS   an inference every 50 ms, beside N - 1 others
    sharing_load.py captures                   a hundred CUDA graphs captured and replayed
    sharing_load.py graph-memory               graphs that allocate while they are captured, up to the limit
    sharing_load.py one-of-two GIB             two processes that ask for it, and a third when one was killed
    sharing_load.py hold FOLDER GIB            memory with known content, until FOLDER/go exists
    sharing_load.py jax | cupy                 what they see, and a product"""

import hashlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path

GIB = 1 << 30


def tell(**facts):
    print(json.dumps(facts), flush=True)


def wait_for(condition):
    """Of another process, which has no other way to say that it is ready."""
    while not condition():
        time.sleep(0.005)


def meet(folder, count):
    """Goes on when so many processes have come."""
    folder = Path(folder)
    (folder / f"ready.{os.getpid()}").touch()
    wait_for(lambda: len(list(folder.glob("ready.*"))) >= int(count))


# -- what a program does all day; each returns a function that queues one unit of work


def products(torch, size):
    a, b, out = (torch.randn(size, size, device="cuda", dtype=torch.bfloat16) for _ in range(3))
    return lambda: torch.mm(a, b, out=out)


def small_kernels(torch):
    x = torch.zeros(1024, device="cuda")

    def unit():
        for _ in range(200):
            x.add_(1)

    return unit


def training(torch):
    """Bound by launches."""
    layers = [layer for _ in range(4) for layer in (torch.nn.Linear(512, 512), torch.nn.ReLU())]
    model = torch.nn.Sequential(*layers).cuda()
    steps = torch.optim.SGD(model.parameters(), lr=0.01)
    x, y = torch.randn(64, 512, device="cuda"), torch.randn(64, 512, device="cuda")

    def unit():
        for _ in range(10):
            steps.zero_grad()
            torch.nn.functional.mse_loss(model(x), y).backward()
            steps.step()

    return unit


def spinning(torch, cycles):
    """One thread that waits for so many cycles: takes as long whatever power the GPU has to spare."""
    return lambda: torch.cuda._sleep(cycles)


def spinning_graph(torch, cycles, count):
    torch.cuda._sleep(1)
    torch.cuda.synchronize()
    recorded = torch.cuda.CUDAGraph()
    with torch.cuda.graph(recorded):
        for _ in range(count):
            torch.cuda._sleep(cycles)
    return recorded.replay


def graph(torch, size, count):
    a, b, out = (torch.randn(size, size, device="cuda", dtype=torch.bfloat16) for _ in range(3))
    torch.mm(a, b, out=out)
    torch.cuda.synchronize()
    recorded = torch.cuda.CUDAGraph()
    with torch.cuda.graph(recorded):
        for _ in range(count):
            torch.mm(a, b, out=out)
    return recorded.replay


def streams(torch):
    units = [products(torch, 4096) for _ in range(4)]
    its = [torch.cuda.Stream() for _ in units]
    torch.cuda.synchronize()

    def unit():
        for stream, one in zip(its, units):
            with torch.cuda.stream(stream):
                one()

    return unit


def copies(torch):
    a = torch.randn(GIB // 4, device="cuda")
    b = torch.empty_like(a)
    return lambda: torch.add(a, 1, out=b)


def vision(torch):
    import torchvision

    model = torchvision.models.resnet50().cuda().to(memory_format=torch.channels_last)
    steps = torch.optim.SGD(model.parameters(), lr=0.01)
    x = torch.randn(32, 3, 224, 224, device="cuda").to(memory_format=torch.channels_last)

    def unit():
        steps.zero_grad()
        with torch.autocast("cuda", torch.bfloat16):
            model(x).sum().backward()
        steps.step()

    return unit


def compiled(torch):
    layer = torch.nn.TransformerEncoderLayer(512, 8, 2048, batch_first=True, dropout=0).cuda().eval()
    run = torch.compile(layer, mode="reduce-overhead")
    x = torch.randn(16, 128, 512, device="cuda")

    def unit():
        with torch.no_grad():
            for _ in range(10):
                run(x)

    return unit


# How many units are queued before they are waited for.
SPINNING = {
    "spin, 20 us": (lambda torch: spinning(torch, 40_000), 200),
    "spin, 1 ms": (lambda torch: spinning(torch, 2_000_000), 8),
    "spin, 50 ms": (lambda torch: spinning(torch, 100_000_000), 1),
    "spin, graph of 5 ms": (lambda torch: spinning_graph(torch, 100_000, 100), 2),
}
WORKLOADS = {
    "kernels of 3 us": (small_kernels, 5),
    "training, small": (training, 1),
    "product, 1.4 ms": (lambda torch: products(torch, 8192), 8),
    "product, 37 ms": (lambda torch: products(torch, 24576), 1),
    "graph, 2 ms": (lambda torch: graph(torch, 2048, 64), 4),
    "graph, 90 ms": (lambda torch: graph(torch, 8192, 64), 1),
    "four streams": (streams, 8),
    "bandwidth, 0.5 ms": (copies, 8),
    "ResNet-50 training": (vision, 1),
}
COMPILED = {"torch.compile": (compiled, 5)}
KNOWN = WORKLOADS | SPINNING | COMPILED


def rate(torch, unit, at_once, seconds):
    """Units per second from the end of one lot to the end of another."""
    ended, begin = [], time.monotonic()
    while len(ended) < 2 or ended[-1] < begin + seconds + 0.5:
        for _ in range(at_once):
            unit()
        torch.cuda.synchronize()
        ended.append(time.monotonic())
    counted = [end for end in ended if end >= begin + 0.5]  # before that it has what it saved up
    if len(counted) < 2:
        counted = ended[-2:]
    return (len(counted) - 1) * at_once / (counted[-1] - counted[0])


def rates(seconds, limits, *which):
    import torch

    named = {name: KNOWN[name] for name in which or WORKLOADS}
    units = {}
    for name, (make, at_once) in named.items():
        unit = make(torch)
        for _ in range(5):
            unit()
        torch.cuda.synchronize()
        units[name] = (unit, at_once)
    for limit in limits.split(","):
        if limit != "-":
            request = f"{os.environ['BENCH_MEMORY']},0.1..{limit}"
            subprocess.run(["gjob", "update", os.environ["GFLOW_JOB_ID"], "--gpus", request], check=True,
                           stdout=subprocess.DEVNULL)
        for name, (unit, at_once) in units.items():
            tell(limit=limit, workload=name, rate=rate(torch, unit, at_once, float(seconds)))


def smoke():
    begin = time.monotonic()
    import torch

    imported = time.monotonic()
    torch.cuda.init()
    free, total = torch.cuda.mem_get_info()
    begun = time.monotonic()
    torch.manual_seed(1)
    a = torch.randn(2048, 2048)
    product = (a.cuda() @ a.cuda()).cpu().numpy().tobytes()
    tell(free=free, total=total, properties=torch.cuda.get_device_properties(0).total_memory,
         name=torch.cuda.get_device_name(0), digest=hashlib.sha256(product).hexdigest()[:16],
         import_seconds=imported - begin, context_seconds=begun - imported)


def memory():
    import torch

    free, total = torch.cuda.mem_get_info()
    size, held, refused, after = total // 8, [], None, None
    try:
        for _ in range(9):
            held.append(torch.empty(size, dtype=torch.uint8, device="cuda"))
    except torch.OutOfMemoryError as error:
        refused = str(error)
    given = len(held) * size
    held.clear()
    torch.cuda.empty_cache()
    for _ in range(50):  # what is given back can be had again, all of it
        after = [torch.empty(size, dtype=torch.uint8, device="cuda") for _ in range(7)]
        del after
        torch.cuda.empty_cache()
    smi = subprocess.run(["nvidia-smi", "--query-gpu=memory.total,memory.used", "--format=csv,noheader"],
                         capture_output=True, text=True).stdout.strip()
    tell(free=free, total=total, given=given, refused=refused, smi=smi, free_after=torch.cuda.mem_get_info()[0])


def graph_memory():
    """What a graph allocates while it is captured, in a pool of its own."""
    import torch

    total = torch.cuda.mem_get_info()[1]
    made, refused = [], None
    try:
        for _ in range(9):
            recorded = torch.cuda.CUDAGraph()
            with torch.cuda.graph(recorded):
                x = torch.zeros(total // 8, dtype=torch.uint8, device="cuda")
                x.add_(1)
            recorded.replay()
            made.append((recorded, x))
        torch.cuda.synchronize()
    except RuntimeError as error:
        refused = str(error).splitlines()[0]
    tell(graphs=len(made), refused=refused)


def pair(folder, count, seconds, name):
    import torch

    make, at_once = KNOWN[name]
    unit = make(torch)
    for _ in range(5):
        unit()
    torch.cuda.synchronize()
    meet(folder, count)
    tell(rate=rate(torch, unit, at_once, float(seconds)))


def rank(folder, count, seconds, own, ranks):
    """One process of `gang`: steps of a product and an all-reduce. All of them do as many as the first one says."""
    import torch

    own, ranks = int(own), int(ranks)
    torch.cuda.set_device(own)
    store = torch.distributed.FileStore(str(Path(folder) / f"store-{os.getppid()}"), ranks)
    torch.distributed.init_process_group("nccl", store=store, rank=own, world_size=ranks)
    a, gradient = torch.randn(4096, 4096, device="cuda"), torch.randn(1 << 20, device="cuda")
    goes_on, steps = torch.ones(1, device="cuda"), 0

    def step():
        torch.mm(a, a)
        torch.distributed.all_reduce(gradient)

    for _ in range(5):
        step()
    torch.cuda.synchronize()
    if own == 0:
        meet(folder, count)
    torch.distributed.barrier()
    begin = time.monotonic()
    while goes_on.item() == 1:
        for _ in range(16):
            step()
        steps += 16
        goes_on.fill_(time.monotonic() - begin < float(seconds))
        torch.distributed.broadcast(goes_on, 0)
    torch.cuda.synchronize()
    if own == 0:
        tell(rate=steps / (time.monotonic() - begin))
    torch.distributed.destroy_process_group()


def gang(folder, count, seconds):
    """A process for each GPU of the job."""
    import torch

    ranks = torch.cuda.device_count()
    command = [sys.executable, __file__, "rank", folder, count, seconds]
    processes = [subprocess.Popen([*command, str(own), str(ranks)]) for own in range(ranks)]
    if any([process.wait() for process in processes]):
        sys.exit("a rank failed")


def latency(folder, count, seconds):
    import torch
    import torchvision

    model = torchvision.models.resnet50().cuda().eval()
    x, took = torch.randn(1, 3, 224, 224, device="cuda"), []
    with torch.no_grad():
        for _ in range(10):
            model(x)
        torch.cuda.synchronize()
        meet(folder, count)
        end = time.monotonic() + float(seconds)
        while time.monotonic() < end:
            time.sleep(0.05)
            begin = time.monotonic()
            model(x)
            torch.cuda.synchronize()
            took.append((time.monotonic() - begin) * 1000)
    took.sort()
    tell(median=took[len(took) // 2], p99=took[len(took) * 99 // 100], most=took[-1], count=len(took))


def captures():
    import torch

    x, failed = torch.randn(512, 512, device="cuda"), 0
    other = products(torch, 2048)
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        y = (x @ x).relu() @ x
    torch.cuda.synchronize()
    for _ in range(100):
        recorded = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.graph(recorded):
                y = (x @ x).relu() @ x
            recorded.replay()
            other()
        except RuntimeError as error:
            failed += 1
            print(error, file=sys.stderr)
    torch.cuda.synchronize()
    tell(captured=100 - failed, finite=bool(torch.isfinite(y).any()))


def hold(folder, gib):
    import torch

    folder = Path(folder)
    torch.manual_seed(2)
    parts = [torch.randint(0, 255, (GIB,), dtype=torch.uint8, device="cuda") for _ in range(int(gib))]
    before = [int(part.sum(dtype=torch.int64)) for part in parts]
    torch.cuda.synchronize()
    (folder / "pid").write_text(str(os.getpid()))
    wait_for((folder / "go").exists)
    tell(same=before == [int(part.sum(dtype=torch.int64)) for part in parts])


def one_of_two(gib):
    """Two processes of a job, each of which asks for more than half of it."""
    ask = f"""
import torch
torch.cuda.init(); torch.zeros(1, device='cuda')
try:
    kept = torch.empty({int(gib)} << 30, dtype=torch.uint8, device='cuda'); print(1)
except torch.OutOfMemoryError: print(0)
import sys; sys.stdout.flush(); sys.stdin.read()
"""
    both = [subprocess.Popen([sys.executable, "-c", ask], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            for _ in range(2)]
    got = [int(each.stdout.readline()) for each in both]
    killed = both[got.index(1)] if sum(got) else both[0]
    killed.kill()
    killed.wait()
    begin = time.monotonic()
    third = subprocess.run([sys.executable, "-c", ask], input="", capture_output=True, text=True)
    for each in both:
        each.kill()
        each.wait()
    tell(got=sum(got), after_kill=third.stdout.strip(), seconds=time.monotonic() - begin)


def jax():
    import jax.numpy

    device = jax.devices()[0]
    x = jax.numpy.ones((4096, 4096), dtype=jax.numpy.bfloat16)
    value = float((x @ x)[0, 0])
    tell(platform=device.platform, limit=device.memory_stats()["bytes_limit"], value=value)


def cupy():
    import cupy as its

    free, total = its.cuda.runtime.memGetInfo()
    x = its.ones((2048, 2048), dtype=its.float32)
    value, refused = float((x @ x)[0, 0]), None
    try:
        its.empty(total + (1 << 20), dtype=its.uint8)
    except its.cuda.memory.OutOfMemoryError as error:
        refused = str(error)
    tell(free=free, total=total, value=value, refused=refused)


globals()[sys.argv[1].replace("-", "_")](*sys.argv[2:])
