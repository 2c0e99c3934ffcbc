"""Compression of what is reduced: Horovod's, bfloat16, and users' own. On any number of ranks."""

import pytest
import torch

import horovod.torch as hvd
from horovod.torch.compression import Compressor
from test_torch_optimizer import OPTIMIZERS, assert_same, batches, distributed, loss_of, net

SHIPPED = {
    hvd.Compression.none: None,
    hvd.Compression.fp16: torch.float16,
    hvd.Compression.bf16: torch.bfloat16,
}


class Halves(Compressor):
    """A user's, with a context: scales by a factor that it gives back."""

    @staticmethod
    def compress(tensor):
        return tensor * 0.5, ("halved", tensor.dtype)

    @staticmethod
    def decompress(tensor, ctx):
        assert ctx[0] == "halved"
        return (tensor * 2).to(ctx[1])


class Feedback:
    """A user's compressor with state: the next step adds what rounding has lost. It is an object, and not
    of a class of Horovod."""

    def __init__(self):
        self.lost = {}

    def compress(self, tensor):
        key = tuple(tensor.shape)
        whole = tensor + self.lost.get(key, torch.zeros_like(tensor))
        rounded = whole.to(torch.bfloat16)
        self.lost[key] = whole - rounded.to(tensor.dtype)
        return rounded, tensor.dtype

    def decompress(self, tensor, ctx):
        return tensor.to(ctx)


@pytest.mark.parametrize("compression", list(SHIPPED))
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_shipped(compression, dtype):
    tensor = torch.full((4,), 1.5, dtype=dtype)
    compressed, ctx = compression.compress(tensor)
    assert compressed.dtype == (SHIPPED[compression] or dtype)
    assert compression.decompress(compressed, ctx).dtype == dtype
    for result in (
        hvd.allreduce(tensor, compression=compression),
        hvd.grouped_allreduce([tensor, tensor], compression=compression)[1],
        hvd.reducescatter(tensor.repeat(hvd.size()), compression=compression),
        hvd.grouped_reducescatter([tensor.repeat(hvd.size())], compression=compression)[0],
    ):
        assert result.dtype == dtype and torch.equal(result, tensor)


@pytest.mark.parametrize("compression", list(SHIPPED))
def test_integers_stay(compression):
    tensor = torch.arange(5)
    compressed, ctx = compression.compress(tensor)
    assert compressed is tensor and compression.decompress(compressed, ctx) is tensor
    total = hvd.allreduce(tensor, op=hvd.Sum, compression=compression)
    assert torch.equal(total, tensor * hvd.size())


@pytest.mark.parametrize("compression", [Halves, Halves(), Feedback()])
def test_of_users(compression):
    tensor = torch.full((4,), 3.0)
    assert torch.equal(hvd.allreduce(tensor, compression=compression), tensor)
    first, second = hvd.grouped_allreduce([tensor, tensor.double()], compression=compression)
    assert torch.equal(first, tensor) and second.dtype == torch.float64
    scattered = hvd.reducescatter(tensor.repeat(hvd.size()), compression=compression)
    assert torch.equal(scattered, tensor)


def test_gradient_goes_through_the_compression():
    tensor = torch.ones(3, requires_grad=True)
    hvd.allreduce(tensor, op=hvd.Sum, compression=Halves).sum().backward()
    assert tensor.grad.tolist() == [float(hvd.size())] * 3


@pytest.mark.parametrize("make", [lambda: hvd.Compression.bf16, lambda: Halves, Feedback])
@pytest.mark.parametrize("groups", [None, 2])
def test_in_the_optimizer(make, groups):
    model, reference = net(), net()
    joined, mine = batches(3)
    optimizer = distributed(model, OPTIMIZERS["sgd"](model.parameters()), compression=make(), groups=groups)
    plain = OPTIMIZERS["sgd"](reference.parameters())
    for m, o, data in ((model, optimizer, mine), (reference, plain, joined)):
        for batch in data:
            o.zero_grad()
            loss_of(m, batch).backward()
            o.step()
    assert_same(model, reference, tolerance=3e-2)


@pytest.mark.parametrize("as_dense", [False, True])
def test_with_sparse_gradients(as_dense):
    torch.manual_seed(1)
    model = torch.nn.Embedding(8, 4, sparse=True)
    optimizer = distributed(
        model,
        torch.optim.SGD(model.parameters(), lr=0.5),
        sparse_as_dense=as_dense,
        compression=Halves,
    )
    before = model.weight.detach().clone()
    model(torch.tensor([hvd.rank(), 7])).sum().backward()
    optimizer.step()
    wanted = before.clone()
    wanted[: hvd.size()] -= 0.5 / hvd.size()
    wanted[7] -= 0.5
    assert torch.allclose(model.weight, wanted)


def test_interface_says_what_is_missing():
    for call in (
        lambda: Compressor.compress(torch.ones(1)),
        lambda: Compressor.decompress(None, None),
    ):
        with pytest.raises(NotImplementedError):
            call()
