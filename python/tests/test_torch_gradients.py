"""Gradients of the differentiable collectives: against autograd on a single process that plays all
ranks, and against finite differences. Runs on any number of ranks.

Each rank's loss is the weighted sum of what it got, and the weights differ by rank. The gradient is that
of the sum of the ranks' losses, or, where Horovod averages (allgather, broadcast), of their mean.
"""

import pytest
import torch

import horovod.torch as hvd

ROWS = 6


def random(rank, what, rows):
    generator = torch.Generator().manual_seed(100 * rank + what)
    return torch.randn(rows, 3, dtype=torch.float64, generator=generator)


def played_inputs(rows_of=lambda r: ROWS):
    return [random(r, 0, rows_of(r)).requires_grad_() for r in range(hvd.size())]


def check(operation, play, rows_of=lambda r: ROWS, mean=False):
    """`operation(x)` on this rank; `play(xs)` gives all ranks' outputs."""
    x = random(hvd.rank(), 0, rows_of(hvd.rank())).requires_grad_()
    out = operation(x)
    xs = played_inputs(rows_of)
    outs = play(xs)
    losses = [(o * random(r, 1, len(o))).sum() for r, o in enumerate(outs)]
    (sum(losses) / (len(losses) if mean else 1)).backward()
    assert torch.allclose(out, outs[hvd.rank()])
    (out * random(hvd.rank(), 1, len(out))).sum().backward()
    expected = xs[hvd.rank()].grad
    assert torch.allclose(x.grad, torch.zeros_like(x) if expected is None else expected)


@pytest.mark.parametrize("op, share", [(hvd.Sum, 1.0), (hvd.Average, None)])
@pytest.mark.parametrize("factors", [(1.0, 1.0), (0.5, 3.0)])
def test_allreduce(op, share, factors):
    scale = factors[0] * factors[1] * (share or 1.0 / hvd.size())
    check(
        lambda x: hvd.allreduce(x, op=op, prescale_factor=factors[0], postscale_factor=factors[1]),
        lambda xs: [sum(xs) * scale for _ in xs],
    )


def test_grouped_allreduce():
    check(
        lambda x: torch.cat(hvd.grouped_allreduce([x[:2].contiguous(), x[2:].contiguous()])),
        lambda xs: [sum(xs) / len(xs) for _ in xs],
    )


def test_allgather():
    check(hvd.allgather, lambda xs: [torch.cat(xs) for _ in xs], lambda r: 1 + r, mean=True)


def test_grouped_allgather():
    check(
        lambda x: torch.cat(hvd.grouped_allgather([x[:1].contiguous(), x[1:].contiguous()])),
        lambda xs: [torch.cat([x[:1] for x in xs] + [x[1:] for x in xs]) for _ in xs],
        lambda r: 1 + r,
        mean=True,
    )


def test_broadcast():
    root = hvd.size() - 1
    check(lambda x: hvd.broadcast(x, root), lambda xs: [xs[root] * 1 for _ in xs], mean=True)


def test_alltoall():
    def splits(r):  # one row to the first rank, two to the next, ...; the rest is not sent
        return [1 + (r + i) % 2 for i in range(hvd.size())]

    def play(xs):
        parts = [x.split(splits(r) + [len(x) - sum(splits(r))]) for r, x in enumerate(xs)]
        return [torch.cat([part[r] for part in parts]) for r in range(len(xs))]

    rows = 2 * hvd.size() + 1
    check(lambda x: hvd.alltoall(x, splits(hvd.rank()))[0], play, lambda r: rows)


@pytest.mark.parametrize("op, factor", [(hvd.Average, 1), (hvd.Sum, "size")])
def test_reducescatter(op, factor):
    """Horovod's: what the ranks' rows get is gathered, not divided for an average, and multiplied
    by the number of ranks for a sum."""
    size = hvd.size()
    x = random(hvd.rank(), 0, ROWS).requires_grad_()
    out = hvd.reducescatter(x, op=op)
    (out * random(hvd.rank(), 1, len(out))).sum().backward()
    rows = [ROWS // size + (r < ROWS % size) for r in range(size)]
    gathered = torch.cat([random(r, 1, rows[r]) for r in range(size)])
    assert torch.allclose(x.grad, gathered * (size if factor == "size" else 1))


@pytest.mark.parametrize(
    "operation",
    [
        lambda x: hvd.allreduce(x, op=hvd.Sum),
        lambda x: hvd.allreduce(x, op=hvd.Average, prescale_factor=0.25),
        lambda x: tuple(hvd.grouped_allreduce([x, 2 * x], op=hvd.Average)),
    ],
)
def test_finite_differences(operation):
    # All ranks have the same input and move the same element at a time.
    x = torch.randn(2, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(operation, x)


def test_what_needs_no_gradient_gets_none():
    x = torch.ones(2, requires_grad=True)
    with torch.no_grad():
        assert not hvd.allreduce(x).requires_grad
    assert not hvd.allreduce(x.detach()).requires_grad
    assert hvd.allreduce(x).requires_grad


@pytest.mark.parametrize(
    "operation",
    [
        lambda x: hvd.allreduce(x, op=hvd.Sum),
        lambda x: hvd.grouped_allreduce([x], op=hvd.Sum)[0],
        hvd.allgather,
        lambda x: hvd.alltoall(x, splits=[1] * hvd.size())[0],
        lambda x: hvd.reducescatter(x, op=hvd.Sum),
    ],
    ids=["allreduce", "grouped_allreduce", "allgather", "alltoall", "reducescatter"],
)
def test_gradients_have_gradients(operation):
    x = torch.arange(1.0, 2 * hvd.size() + 1, requires_grad=True)
    (first,) = torch.autograd.grad((operation(x) ** 3).sum(), x, create_graph=True)
    assert first.requires_grad
    (second,) = torch.autograd.grad(first.sum(), x)
    assert torch.equal(second != 0, first != 0)
