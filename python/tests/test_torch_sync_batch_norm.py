"""SyncBatchNorm against torch's BatchNorm on the ranks' joined batches. Runs on any number of
ranks."""

import copy

import pytest
import torch
import torch.nn as nn

import horovod.torch as hvd

SHAPES = {"2d": (), "3d": (5,), "4d": (3, 2), "5d": (2, 3, 2)}
REFERENCES = {0: nn.BatchNorm1d, 1: nn.BatchNorm1d, 2: nn.BatchNorm2d, 3: nn.BatchNorm3d}


def joined_batch(rows_of, shape, dtype=torch.float32):
    """A batch for all ranks, the same everywhere, of which rank r has rows_of(r) rows, and this
    rank's rows of it."""
    generator = torch.Generator().manual_seed(5)
    rows = [rows_of(r) for r in range(hvd.size())]
    joined = 3.0 + 2.0 * torch.randn((sum(rows), 4) + shape, generator=generator)
    start = sum(rows[: hvd.rank()])
    return joined.to(dtype), slice(start, start + rows[hvd.rank()])


def pair(dims, **settings):
    torch.manual_seed(2)
    reference = REFERENCES[dims](4, **settings)
    if reference.affine:
        nn.init.uniform_(reference.weight)
        nn.init.uniform_(reference.bias)
    ours = hvd.SyncBatchNorm.convert_sync_batchnorm(copy.deepcopy(reference))
    assert type(ours) is hvd.SyncBatchNorm
    return ours, reference


@pytest.mark.parametrize("rows_of", [lambda r: 3, lambda r: 2 + r, lambda r: 4 * (r == 0)])
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_equals_batch_norm_on_the_joined_batch(shape, rows_of):
    ours, reference = pair(len(shape))
    joined, mine = joined_batch(rows_of, shape)
    x, y = joined[mine].clone().requires_grad_(), joined.clone().requires_grad_()
    weights = torch.randn(joined.shape, generator=torch.Generator().manual_seed(8))

    out, expected = ours(x), reference(y)
    assert torch.allclose(out, expected[mine], atol=1e-5)
    (out * weights[mine]).sum().backward()
    (expected * weights).sum().backward()

    assert torch.allclose(x.grad, y.grad[mine], atol=1e-4)
    for p, q in zip(ours.parameters(), reference.parameters()):
        assert torch.allclose(hvd.allreduce(p.grad, op=hvd.Sum), q.grad, atol=1e-3)
    for (name, p), (_, q) in zip(ours.named_buffers(), reference.named_buffers()):
        assert torch.allclose(p, q, atol=1e-5), name


@pytest.mark.parametrize(
    "settings",
    [
        dict(affine=False),
        dict(momentum=None),
        dict(momentum=0.7, eps=0.3),
        dict(track_running_stats=False),
    ],
)
def test_settings_mean_what_they_do_in_torch(settings):
    ours, reference = pair(2, **settings)
    for _ in range(3):
        joined, mine = joined_batch(lambda r: 2 + r, (3, 3))
        assert torch.allclose(ours(joined[mine]), reference(joined)[mine], atol=1e-5)
    for (name, p), (_, q) in zip(ours.named_buffers(), reference.named_buffers()):
        assert torch.allclose(p, q, atol=1e-5), name


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_other_types(dtype):
    ours, reference = pair(2)
    if dtype == torch.float64:
        ours, reference = ours.double(), reference.double()
    joined, mine = joined_batch(lambda r: 3, (2, 2), dtype)
    out = ours(joined[mine])
    assert out.dtype == dtype
    tolerance = 1e-10 if dtype == torch.float64 else 0.05
    expected = reference(joined.to(reference.weight.dtype))
    assert torch.allclose(out.double(), expected[mine].double(), atol=tolerance)


def test_large_mean_and_small_deviation_keep_their_digits():
    ours, _ = pair(0)
    joined, mine = joined_batch(lambda r: 50, ())
    joined = 10000.0 + joined / 10.0
    ours(joined[mine])
    exact = joined.double().var(0)
    assert torch.allclose((ours.running_var.double() - 0.9) / 0.1, exact, rtol=0.02)


def test_gradient_is_the_derivative():
    ours = hvd.SyncBatchNorm(3).double()
    ours.track_running_stats = False
    x = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)

    # All ranks have the same input and move the same element of it at a time, and by symmetry what
    # one output gains by all ranks' inputs is what one input gives to all ranks' outputs.
    assert torch.autograd.gradcheck(ours, x)


def test_evaluation_communicates_nothing():
    ours, reference = pair(2)
    ours.eval(), reference.eval()
    joined, _ = joined_batch(lambda r: 3, (2, 2))
    if hvd.rank() == 0:  # the others would hang it
        assert torch.allclose(ours(joined), reference(joined), atol=1e-6)


def test_evaluation_without_running_statistics_uses_those_of_the_joined_batch():
    ours, reference = pair(2, track_running_stats=False)
    ours.eval(), reference.eval()
    late, _ = pair(2)
    late.eval()
    late.track_running_stats = False  # has buffers, which it does not use from here on
    joined, own = joined_batch(lambda r: 2 + r, (2, 2))
    assert torch.allclose(ours(joined[own]), reference(joined)[own], atol=1e-6)
    assert torch.equal(late(joined[own]), ours(joined[own]))


def test_bad_input_is_an_error_on_all_ranks():
    ours, _ = pair(2)
    with pytest.raises(ValueError, match=r"an input of shape \[N, C, \.\.\.\]"):
        ours(torch.ones(4))
    rows = 1 if hvd.rank() == 0 else 0
    with pytest.raises(ValueError, match="more than 1 value per channel"):
        ours(torch.ones(rows, 4))


def test_convert_replaces_all_and_keeps_parameters():
    model = nn.Sequential(nn.Linear(4, 4), nn.Sequential(nn.BatchNorm1d(4), nn.ReLU()))
    names = list(model.state_dict())
    norm = model[1][0]
    converted = hvd.SyncBatchNorm.convert_sync_batchnorm(model.eval())
    assert converted is model
    assert type(model[1][0]) is hvd.SyncBatchNorm and not model[1][0].training
    assert model[1][0].weight is norm.weight and model[1][0].running_var is norm.running_var
    assert list(model.state_dict()) == names


def test_weights_without_a_bias():
    reference = nn.BatchNorm2d(4)
    nn.init.uniform_(reference.weight)
    reference.register_parameter("bias", None)  # as with bias=False, which newer torch has
    ours = hvd.SyncBatchNorm.convert_sync_batchnorm(copy.deepcopy(reference))
    joined, mine = joined_batch(lambda r: 3, (3, 2))
    out, expected = ours(joined[mine]), reference(joined)
    assert torch.allclose(out, expected[mine], atol=1e-5)
    out.square().sum().backward()
    expected.square().sum().backward()
    assert torch.allclose(hvd.allreduce(ours.weight.grad, op=hvd.Sum), reference.weight.grad, atol=1e-3)


def test_gradients_that_accumulate_over_two_passes_are_reduced():
    ours, reference = pair(2)
    optimizer = hvd.DistributedOptimizer(
        torch.optim.SGD(ours.parameters(), lr=0.1),
        list(ours.named_parameters()),
        op=hvd.Sum,
        backward_passes_per_step=2,
    )
    joined, mine = joined_batch(lambda r: 3, (2, 2))
    for _ in range(2):
        ours(joined[mine]).square().sum().backward()
        reference(joined).square().sum().backward()
    optimizer.step()
    for p, q in zip(ours.parameters(), reference.parameters()):
        assert torch.allclose(p.grad, q.grad, rtol=1e-4)
