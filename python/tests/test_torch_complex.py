"""Collectives on complex tensors, and their gradients. On any number of ranks."""

import pytest
import torch

import horovod.torch as hvd

COMPLEX = [torch.complex64, torch.complex128]


def values_of(rank, dtype=torch.complex64):
    """A row for each rank, other ones on each."""
    return torch.arange(1, 2 * hvd.size() + 1).reshape(-1, 2).to(dtype) * complex(rank + 1, -2 * rank - 1)


def of_all(dtype):
    return [values_of(rank, dtype) for rank in range(hvd.size())]


@pytest.mark.parametrize("dtype", COMPLEX)
def test_sums_and_averages(dtype):
    own, total = values_of(hvd.rank(), dtype), sum(of_all(dtype))
    rows = slice(hvd.rank(), hvd.rank() + 1)
    assert torch.equal(hvd.allreduce(own, op=hvd.Sum), total)
    assert torch.allclose(hvd.allreduce(own), total / hvd.size())
    assert torch.equal(hvd.allreduce(own, op=hvd.Sum, prescale_factor=0.5, postscale_factor=4.0), total * 2)
    assert torch.equal(hvd.reducescatter(own, op=hvd.Sum), total[rows])
    for result in hvd.grouped_allreduce([own, own.real.contiguous()], op=hvd.Sum)[:1]:
        assert torch.equal(result, total)
    assert torch.equal(hvd.grouped_reducescatter([own], op=hvd.Sum)[0], total[rows])
    assert torch.equal(hvd.allreduce(own[0, 0].clone(), op=hvd.Sum), total[0, 0])
    assert hvd.allreduce_(own, op=hvd.Sum) is own and torch.equal(own, total)


@pytest.mark.parametrize("dtype", COMPLEX)
def test_what_moves_values(dtype):
    own, every = values_of(hvd.rank(), dtype), of_all(dtype)
    exchanged = torch.cat([each[hvd.rank() : hvd.rank() + 1] for each in every])
    assert torch.equal(hvd.allgather(own), torch.cat(every))
    assert torch.equal(hvd.grouped_allgather([own])[0], torch.cat(every))
    assert torch.equal(hvd.allgather(own[: hvd.rank()]).cpu(), torch.cat([e[:i] for i, e in enumerate(every)]))
    assert torch.equal(hvd.broadcast(own, 0), every[0])
    assert torch.equal(hvd.alltoall(own), exchanged)
    rows, received = hvd.alltoall(own, [1] * hvd.size())
    assert torch.equal(rows, exchanged) and received.tolist() == [1] * hvd.size()
    assert hvd.synchronize(hvd.broadcast_async_(own, 0)) is own and torch.equal(own, every[0])


def test_a_conjugate_view_is_sent_with_its_own_sign():
    own, total = values_of(hvd.rank()), sum(of_all(torch.complex64))
    assert torch.equal(hvd.allreduce(own.conj(), op=hvd.Sum), total.conj())
    assert torch.equal(hvd.allreduce(own.conj(), op=hvd.Sum, name="view"), total.conj())
    hvd.allreduce_(own.conj(), op=hvd.Sum)
    assert torch.equal(own, total)


def test_gradients():
    """Those of the same program on one rank with all ranks' tensors."""
    own = values_of(hvd.rank(), torch.complex128).requires_grad_()
    every = [each.requires_grad_() for each in of_all(torch.complex128)]
    weight = torch.tensor([2.0 - 1.0j, 1.0j], dtype=torch.complex128)
    (hvd.allreduce(own, op=hvd.Sum) * weight).abs().sum().backward()
    (sum(every) * weight).abs().sum().backward()
    assert torch.allclose(own.grad, every[hvd.rank()].grad * hvd.size())


@pytest.mark.parametrize("op", ["Min", "Max", "Product", "Adasum"])
def test_reductions_that_are_refused(op):
    for run in (
        hvd.allreduce,
        hvd.allreduce_,
        lambda tensor, op: hvd.grouped_allreduce([torch.ones(1), tensor], op=op),
        *([hvd.reducescatter] if op != "Adasum" else []),
    ):
        with pytest.raises(
            ValueError, match=rf"complex64 can be reduced by hvd\.Sum and hvd\.Average, not by hvd\.{op}$"
        ):
            run(values_of(0), op=getattr(hvd, op))
    assert hvd.allreduce(torch.ones(1), op=hvd.Sum).item() == hvd.size()


def test_scalars_without_rows_are_refused():
    scalar = torch.tensor(1.0j)
    for run in (hvd.allgather, hvd.allgather_async, hvd.alltoall, hvd.reducescatter):
        with pytest.raises((IndexError, ValueError), match=r"at least one dimension|scalar"):
            run(scalar)


def test_an_optimizer_reduces_complex_gradients():
    weight = torch.nn.Parameter(torch.zeros(2, dtype=torch.complex64))
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD([weight], lr=1.0), [("weight", weight)])
    target = torch.full((2,), complex(hvd.rank() + 1, 2.0))
    (weight - target).abs().square().sum().backward()
    optimizer.step()
    wanted = sum(2 * complex(rank + 1, 2.0) for rank in range(hvd.size())) / hvd.size()
    assert torch.allclose(weight.detach(), torch.full((2,), wanted))
