"""Tensors of 0 bytes to 1 GiB: the sums, gathers and broadcasts of what each rank can calculate, in place and not."""

import torch

from checks import check, run_all
from gpu_rank import LARGEST_BYTES, device, hvd

SIZES = [0, 4, 4096, 1 << 20, (16 << 20) + 4, LARGEST_BYTES]
TOTAL = hvd.size() * (hvd.size() + 1) // 2


def ramp(count):
    """Numbers that differ from place to place, small enough for exact sums."""
    return torch.arange(count, device=device, dtype=torch.float32).remainder_(1009)


@check
def sums():
    for size in SIZES:
        own = ramp(size // 4)
        reduced = hvd.allreduce(own * (hvd.rank() + 1), op=hvd.Sum, name=f"sum {size}")
        assert torch.equal(reduced, own * TOTAL), size


@check
def sums_in_place():
    for size in SIZES:
        data = ramp(size // 4) * (hvd.rank() + 1)
        assert hvd.allreduce_(data, op=hvd.Sum, name=f"in place {size}") is data
        assert torch.equal(data, ramp(size // 4) * TOTAL), size


@check
def broadcasts():
    for size in SIZES:
        data = ramp(size // 4) if hvd.rank() == hvd.size() - 1 else torch.zeros(size // 4, device=device)
        hvd.broadcast_(data, hvd.size() - 1, name=f"broadcast {size}")
        assert torch.equal(data, ramp(size // 4)), size


@check
def gathers():
    for size in SIZES:
        count = size // 4 // hvd.size()
        gathered = hvd.allgather(ramp(count) + hvd.rank(), name=f"gather {size}")
        for rank, part in enumerate(gathered.split(count) if count else []):
            assert torch.equal(part, ramp(count) + rank), (size, rank)


@check
def scattered_sums():
    for size in SIZES:
        count = size // 4 // hvd.size() * hvd.size()
        part = count // hvd.size()
        scattered = hvd.reducescatter(ramp(count), op=hvd.Sum, name=f"scatter {size}")
        expected = ramp(count)[hvd.rank() * part : (hvd.rank() + 1) * part] * hvd.size()
        assert torch.equal(scattered, expected), size


@check
def exchanges():
    for size in SIZES:
        count = size // 4 // hvd.size()
        data = torch.cat([ramp(count) + 100 * hvd.rank() + to for to in range(hvd.size())])
        received, _ = hvd.alltoall(data, splits=[count] * hvd.size(), name=f"exchange {size}")
        for rank, part in enumerate(received.split(count) if count else []):
            assert torch.equal(part, ramp(count) + 100 * rank + hvd.rank()), (size, rank)


run_all()
