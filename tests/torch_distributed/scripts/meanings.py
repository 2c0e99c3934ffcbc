"""Calls whose meaning differs on rank 1, such as another root: all ranks must get the error. meanings.py STORE RANK RANKS"""

import datetime
import itertools
import sys
from typing import Callable

import torch
import torch.distributed as dist

import horovod.torch.distributed  # noqa: F401

store, rank, size = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
torch.set_num_threads(1)
dist.init_process_group("hvd", init_method=store, rank=rank, world_size=size, timeout=datetime.timedelta(seconds=60))
mistaken = rank == 1
AT = 1 if mistaken else 0
REDUCTIONS = ["SUM", "AVG", "PRODUCT", "MIN", "MAX", "BAND", "BOR", "BXOR"]
# What the engine says.
SAID = {"SUM": "sum", "AVG": "average", "PRODUCT": "product", "MIN": "min", "MAX": "max"}


def told(call: Callable[[], object], others_mean: str, rank_1_means: str) -> None:
    """Checks that the call fails with a text that has both meanings, and that the group goes on."""
    try:
        call()
    except RuntimeError as error:
        text = str(error)
    else:
        raise AssertionError(f"no error: {others_mean}, {rank_1_means}")
    before, _, after = text.partition("rank 1 sent ")
    of_rank_1, _, of_rank_2 = after.partition(", rank 2 sent ")
    assert "rank 2 sent" in text or "ranks 0 and 2 sent" in text, text
    assert others_mean in before + of_rank_2 and rank_1_means in of_rank_1, text
    tensor = torch.ones(2)
    dist.all_reduce(tensor)
    assert tensor.tolist() == [size, size]


def ints() -> torch.Tensor:
    return torch.ones(3, dtype=torch.int64)


def list_of(counts: list[int]) -> list[torch.Tensor]:
    return [torch.ones(count) for count in counts]


def gather(root: int) -> None:
    dist.gather(torch.ones(3), list_of([3] * size) if rank == root else None, root)


def scatter(root: int) -> None:
    dist.scatter(torch.ones(3), list_of([3] * size) if rank == root else None, root)


told(lambda: dist.reduce(torch.ones(3), AT), "reduce to rank 0", "reduce to rank 1")
told(lambda: dist.reduce(ints(), AT, dist.ReduceOp.BOR), "reduce to rank 0 by BOR", "reduce to rank 1 by BOR")
told(lambda: dist.broadcast(torch.ones(3), AT), "root rank 0", "root rank 1")
told(lambda: gather(AT), "gather to rank 0", "gather to rank 1")
told(lambda: scatter(AT), "scatter from rank 0", "scatter from rank 1")
told(lambda: scatter(0) if mistaken else gather(0), "gather to rank 0", "scatter from rank 0")
told(lambda: dist.reduce(torch.ones(3), 0) if mistaken else dist.all_reduce(torch.ones(3)), "", "reduce to rank 0")
shape = [4] if mistaken else [3]
told(lambda: dist.all_reduce(torch.sparse_coo_tensor([[0]], [1.0], shape)), "sparse tensor [3]", "sparse tensor [4]")
for one, other in itertools.combinations(REDUCTIONS, 2):
    op = getattr(dist.ReduceOp, other if mistaken else one)
    for at_once in (True, False):

        def reduce(op: object = op, at_once: bool = at_once) -> None:
            work = dist.all_reduce(ints(), op, async_op=not at_once)
            if work is not None:
                work.wait()

        # A reduction of the engine is only called an allreduce beside one that is made of a gather.
        alike = (one in SAID) == (other in SAID)
        told(reduce, SAID.get(one, one) if alike else "allreduce", SAID.get(other, other))
sizes = [1, 2, 3]
turned = [3, 2, 1] if mistaken else sizes
told(lambda: dist.all_gather(list_of(turned), torch.ones(sizes[rank])), "[1, 2, 3]", "[3, 2, 1]")
given = 4 if mistaken else 3
told(lambda: dist.all_gather(list_of([given] * size), torch.ones(given)), "of 3 elements each", "of 4 elements each")
told(
    lambda: dist.reduce_scatter(torch.ones(sizes[rank]), list_of(turned if rank == 1 else sizes)),
    "[1, 2, 3]",
    "[3, 2, 1]",
)
print("all right", flush=True)
