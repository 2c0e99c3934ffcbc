"""Runs cases over Gloo and over the backend hvd, in one process, and compares what they return."""

import datetime
import os
import sys
from collections.abc import Iterable
from typing import Any, Callable

import torch
import torch.distributed as dist

import horovod.torch.distributed  # noqa: F401

BACKENDS = ("gloo", "hvd")


def tensors_of(found: Any) -> Iterable[torch.Tensor]:
    """Yields all tensors in lists and dictionaries of them; numbers become tensors."""
    if isinstance(found, dict):
        found = [found[key] for key in sorted(found)]
    if isinstance(found, (list, tuple)):
        for each in found:
            yield from tensors_of(each)
        return
    if hasattr(found, "full_tensor"):
        found = found.full_tensor()
    yield torch.as_tensor(found).detach().clone()


def compare(cases: Iterable[Callable[[], Any]]) -> None:
    """Called as SCRIPT STORE RANK RANKS [CASE]. Each case is a training that returns losses and parameters. Sums of two ranks must be
    the same bit for bit; those of more are added in another order.
    """
    store, rank, size = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    torch.set_num_threads(1)
    results: dict[str, dict[str, list[torch.Tensor]]] = {}
    for backend in BACKENDS:
        dist.init_process_group(
            backend,
            init_method=f"{store}-{backend}",
            rank=rank,
            world_size=size,
            timeout=datetime.timedelta(seconds=60),
        )
        results[backend] = {}
        for case in cases:
            if sys.argv[4:] and case.__name__ not in sys.argv[4:]:
                continue
            torch.manual_seed(0)
            results[backend][case.__name__] = list(tensors_of(case()))
        dist.destroy_process_group()
    for name, wanted in results["gloo"].items():
        found = results["hvd"][name]
        assert wanted and len(wanted) == len(found), name
        for one, other in zip(found, wanted):
            close = torch.equal(one, other) if size == 2 else torch.allclose(one, other, rtol=1e-5, atol=1e-6)
            assert close, (name, one, other)
        print(f"rank {rank}: {name} is equal", flush=True)
    sys.stderr.flush()
    os._exit(0)  # Gloo rarely aborts a process at its end
