"""Every operation on every type, in a GPU's memory, against the same operation in the host's.

    operations.py [few]

few: only some types and shapes. With NCCL each operation of N ranks on one GPU takes some turns of all of them, 2 ms each.
"""

import itertools
import os
import sys

import torch

from gpu_rank import IS_SIMULATED, bus_copies, device, hvd
from horovod.common.exceptions import HorovodRequestError

TYPES = [
    torch.uint8,
    torch.int8,
    torch.int16,
    torch.int32,
    torch.int64,
    torch.float16,
    torch.bfloat16,
    torch.float32,
    torch.float64,
    torch.bool,
    torch.complex64,
]
REDUCTIONS = [hvd.Average, hvd.Sum, hvd.Min, hvd.Max, hvd.Product]
SHAPES = [(0,), (1,), (17,), (1000, 7), (300001,)]
if sys.argv[1:] == ["few"]:
    TYPES, SHAPES = (
        [torch.uint8, torch.int16, torch.bfloat16, torch.float32, torch.complex64],
        [(17,), (1000, 7), (300001,)],
    )
LOOSE = {torch.float16: 2e-3, torch.bfloat16: 2e-2, torch.float32: 1e-6, torch.float64: 1e-12, torch.complex64: 1e-6}


def tensor(dtype, shape, seed):
    generator = torch.Generator().manual_seed(1000 * seed + hvd.rank())
    if dtype == torch.bool:
        return torch.randint(0, 2, shape, generator=generator).bool()
    if dtype.is_complex:
        return torch.view_as_complex(torch.randint(-3, 4, (*shape, 2), generator=generator).to(torch.float32))
    return torch.randint(1, 4, shape, generator=generator).to(dtype)


def check(what, on_gpu, on_host):
    assert on_gpu.device == device, what
    got = on_gpu.cpu()
    assert got.dtype == on_host.dtype and got.shape == on_host.shape, what
    if got.dtype in LOOSE:
        torch.testing.assert_close(got, on_host, rtol=LOOSE[got.dtype], atol=LOOSE[got.dtype], msg=str(what))
    else:
        assert torch.equal(got, on_host), what


def splits_of(rows, turn):
    """Different numbers of rows to the ranks; with `turn` as many come in all as go."""
    size = hvd.size()
    unit = rows // (size * (size + 1) // 2)
    return [unit * ((to + turn * hvd.rank()) % size + 1) for to in range(size)]


def check_moves(what, gpu, host):
    check((what, "allgather"), hvd.allgather(gpu), hvd.allgather(host))
    part = len(host) * (hvd.rank() + 1) // hvd.size()  # other ranks have less, or nothing
    check((what, "part"), hvd.allgather(gpu[:part]), hvd.allgather(host[:part]))
    even = len(host) // hvd.size() * hvd.size()
    check((what, "even"), hvd.alltoall(gpu[:even]), hvd.alltoall(host[:even]))
    for turn in (0, 1):
        splits = splits_of(len(host), turn)
        on_gpu, received = hvd.alltoall(gpu, splits=splits)
        on_host, expected = hvd.alltoall(host, splits=splits)
        check((what, splits), on_gpu, on_host)
        assert received.is_cuda and torch.equal(received.cpu(), expected), what
    for root in range(hvd.size()):
        check((what, root), hvd.broadcast(gpu, root), hvd.broadcast(host, root))


def check_reductions(what, gpu, host):
    for op, factor in itertools.product(REDUCTIONS, (None, 0.5)):
        if host.dtype == torch.bool and (op == hvd.Average or factor is not None):
            continue
        if host.dtype.is_complex and op not in (hvd.Average, hvd.Sum):
            continue
        # NCCL scales sums of floats only; all else that is scaled goes through host memory.
        scales = {} if factor is None else dict(prescale_factor=factor, postscale_factor=3.0 * factor)
        arguments = dict(op=op, **scales)
        expected = hvd.allreduce(host, **arguments)
        check((what, op, factor), hvd.allreduce(gpu, **arguments), expected)
        in_place = gpu.clone()
        hvd.allreduce_(in_place, **arguments)
        check((what, op, factor, "in place"), in_place, expected)
        check(
            (what, op, factor, "scattered"), hvd.reducescatter(gpu, **arguments), hvd.reducescatter(host, **arguments)
        )


def check_groups(what, host):
    gpu = [each.to(device) for each in host]
    least, most = (hvd.Sum, hvd.Average) if host[0].dtype.is_complex else (hvd.Min, hvd.Max)
    groups = {
        "allreduce": lambda tensors: hvd.grouped_allreduce(tensors, op=most),
        "allgather": lambda tensors: hvd.grouped_allgather([each[hvd.rank() :] for each in tensors]),
        "reducescatter": lambda tensors: hvd.grouped_reducescatter(tensors, op=least),
        "alltoall": lambda tensors: [
            each for each, _ in hvd.grouped_alltoall(tensors, splits=[splits_of(len(each), 0) for each in tensors])
        ],
    }
    for name, operation in groups.items():
        for on_gpu, on_host in zip(operation(gpu), operation(host)):
            check((what, "group", name), on_gpu, on_host)


for seed, (dtype, shape) in enumerate(itertools.product(TYPES, SHAPES), 1):
    host = tensor(dtype, shape, seed)
    gpu = host.to(device)
    check_reductions((dtype, shape), gpu, host)
    check_moves((dtype, shape), gpu, host)
    check_groups((dtype, shape), [tensor(dtype, (size,), seed + size) for size in (1, 5, 70000)])
    assert torch.equal(gpu.cpu(), host), "the input has changed"

if hvd.size() > 1:
    mixed = torch.ones(hvd.size(), device="cpu" if hvd.rank() == 0 else device)
    for operation in (hvd.allgather, hvd.alltoall, hvd.reducescatter, hvd.allreduce):
        try:
            operation(mixed)
        except HorovodRequestError as error:
            assert f"rank 0 sent float32 [{hvd.size()}] on the host" in str(error), error
        else:
            raise AssertionError("a mix of host and GPU went unnoticed")


def step_of_an_optimizer():
    model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 8)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
    batch = torch.ones(4, 64, device=device)
    before = bus_copies()
    model(batch).sum().backward()
    optimizer.step()
    assert bus_copies() == before, "gradients went over the bus"


if IS_SIMULATED and os.environ.get("HOROVOD_GPU_OPERATIONS") != "HOST":
    for dtype in (torch.float32, torch.complex64, torch.int64):
        gpu = tensor(dtype, (hvd.size(), 7), 1).to(device)
        before = bus_copies()
        hvd.allreduce(gpu, op=hvd.Sum)
        hvd.grouped_allreduce_([gpu.clone(), gpu.clone()], op=hvd.Sum)
        hvd.allgather(gpu)
        hvd.broadcast(gpu, 0)
        hvd.reducescatter(gpu, op=hvd.Sum)
        assert bus_copies() == before, dtype
        hvd.alltoall(gpu)
        assert bus_copies() == before + 1, dtype  # the numbers of rows received, a tensor on the GPU
    step_of_an_optimizer()

# Results of unknown sizes, many in flight, on a stream with work before and after them.
with torch.cuda.stream(torch.cuda.Stream()):
    for turn in range(10):
        rows = [torch.full((1000 * (hvd.rank() + 1), 50), 1.0, device=device) * (100 * turn + i) for i in range(5)]
        handles = [hvd.allgather_async(each) for each in rows]
        noise = torch.ones(1 << 22, device=device).cumsum(0)
        for i, handle in enumerate(handles):
            gathered = hvd.synchronize(handle)
            assert gathered.shape == (500 * hvd.size() * (hvd.size() + 1), 50)
            assert (gathered == 100 * turn + i).all().item() and noise[0].item() == 1

# The input is still being computed when the operation is submitted, and what comes after it sees the result.
big = torch.ones(1 << 24, device=device)
for _ in range(20):
    product = big
    for _ in range(10):
        product = product * 1.0
    handle = hvd.allreduce_async_(product * (hvd.rank() + 1), op=hvd.Sum)
    result = hvd.synchronize(handle) + 1.0
    expected = hvd.size() * (hvd.size() + 1) / 2 + 1
    assert (result == expected).all().item()

# A rank without more data.
if hvd.rank() == 0:
    for _ in range(3):
        assert torch.equal(hvd.allreduce(torch.ones(5, device=device), op=hvd.Sum, name="last").cpu(), torch.ones(5))
hvd.join()

from horovod.torch.elastic import state  # noqa: E402,F401 the package is whole

print("all as on the host, NCCL", hvd.nccl_built())
hvd.shutdown()
