"""Every operation on every type, in a GPU's memory, against the same operation in the host's."""

import itertools

import torch
from gpu_rank import device, hvd

TYPES = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.bool]
REDUCTIONS = [hvd.Average, hvd.Sum, hvd.Min, hvd.Max, hvd.Product]
SHAPES = [(0,), (1,), (17,), (1000, 7), (300001,)]
LOOSE = {torch.float16: 2e-3, torch.bfloat16: 2e-2, torch.float32: 1e-6, torch.float64: 1e-12}


def tensor(dtype, shape, seed):
    generator = torch.Generator().manual_seed(1000 * seed + hvd.rank())
    if dtype == torch.bool:
        return torch.randint(0, 2, shape, generator=generator).bool()
    return torch.randint(1, 4, shape, generator=generator).to(dtype)


def check(what, on_gpu, on_host):
    assert on_gpu.device == device, what
    got = on_gpu.cpu()
    assert got.dtype == on_host.dtype and got.shape == on_host.shape, what
    if got.dtype in LOOSE:
        torch.testing.assert_close(got, on_host, rtol=LOOSE[got.dtype], atol=LOOSE[got.dtype], msg=str(what))
    else:
        assert torch.equal(got, on_host), what


seed = 0
for dtype, shape in itertools.product(TYPES, SHAPES):
    seed += 1
    host = tensor(dtype, shape, seed)
    gpu = host.to(device)
    for op, factor in itertools.product(REDUCTIONS, (1.0, 0.5)):
        if dtype == torch.bool and (op == hvd.Average or factor != 1.0):
            continue
        arguments = dict(op=op, prescale_factor=factor, postscale_factor=3.0 * factor)
        what = (dtype, shape, op, factor)
        check(what, hvd.allreduce(gpu, **arguments), hvd.allreduce(host, **arguments))
        before = gpu.clone()
        hvd.allreduce_(before, **arguments)
        check(what, before, hvd.allreduce(host, **arguments))
        assert torch.equal(gpu.cpu(), host), "the input has changed"
    for root in range(hvd.size()):
        check((dtype, shape, root), hvd.broadcast(gpu, root), hvd.broadcast(host, root))
    check((dtype, shape, "allgather"), hvd.allgather(gpu), hvd.allgather(host))
    group_host = [tensor(dtype, (size,), seed + size) for size in (1, 5, 70000)]
    reduced = hvd.grouped_allreduce([each.to(device) for each in group_host], op=hvd.Max)
    for each, expected in zip(reduced, hvd.grouped_allreduce(group_host, op=hvd.Max)):
        check((dtype, "group"), each, expected)

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
