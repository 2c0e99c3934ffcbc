"""Objects and parameters that all ranks are given. Runs on any number of ranks."""

import pytest
import torch

import horovod.torch as hvd


def test_objects():
    obj = {"rank": hvd.rank(), "f": lambda x: x + 1, "data": b"x" * 100_000 * (hvd.rank() + 1)}
    for root in range(hvd.size()):
        got = hvd.broadcast_object(obj if hvd.rank() == root else None, root)
        assert got["rank"] == root and got["f"](1) == 2 and len(got["data"]) == 100_000 * (root + 1)
    everyone = hvd.allgather_object(obj)
    assert [got["rank"] for got in everyone] == list(range(hvd.size()))


def test_broadcast_parameters():
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4))
    for p in model.parameters():
        p.data.fill_(hvd.rank() + 1)
    hvd.broadcast_parameters(model.state_dict(), root_rank=hvd.size() - 1)
    assert all((p == hvd.size()).all() for p in model.parameters())
    hvd.broadcast_parameters(list(model.named_parameters()), root_rank=0)
    transposed = torch.full((3, 2), float(hvd.rank())).t()  # not contiguous
    hvd.broadcast_parameters([transposed], root_rank=0)
    assert (transposed == 0).all()
    with pytest.raises(ValueError, match="invalid params of type"):
        hvd.broadcast_parameters(model.named_parameters(), root_rank=0)
