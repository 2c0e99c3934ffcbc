"""Training steps of models, communicated in one way, as the referee asks for them. Started by gradients.py and training.py:

    worker_steps.py HOW SOCKET NAME [STORE RANK SIZE]

HOW: local (no communication), hvd (under horovodrun), ddp, ddp-view (gradient_as_bucket_view), ddp-hvd and hvd-view (over the backend hvd); all
but hvd get the last three arguments.
The referee's operation is a model: resnet50-gradients and gpt-gradients, whose optimizer does nothing, and digits and resnet18, which are trained;
its size is the batch's.
"""

import ctypes
import sys

import torch
import torch.nn.functional as F

import models
from bench_client import serve, time_calls


class NoOptimizer(torch.optim.Optimizer):
    """Only what communicates is to be seen: the weights stay."""

    def __init__(self, parameters):
        super().__init__(parameters, {})

    def step(self, closure=None):
        pass


def make(model, batch):
    """The model, its optimizer, and what gives the loss of a model."""
    if model.endswith("-gradients"):
        module = models.Gradients(models.resnet50_shapes() if model.startswith("resnet50") else models.gpt_shapes())
        one = torch.ones((), requires_grad=True)
        return module, NoOptimizer(module.parameters()), lambda network: network(one)
    module, shape = (models.Digits(), (1, 28, 28)) if model == "digits" else (models.ResNet18(), (3, 64, 64))
    images, labels = torch.randn(batch, *shape), torch.arange(batch) % 10
    return (
        module,
        torch.optim.SGD(module.parameters(), lr=0.01, momentum=0.9),
        lambda network: F.cross_entropy(network(images), labels),
    )


class Local:
    def __init__(self, store, rank, size):
        self.rank, self.barrier, self.end = int(rank), lambda: None, lambda: None

    def distribute(self, name, module, optimizer):
        return module, optimizer


class Hvd:
    def __init__(self):
        import horovod.torch as hvd

        hvd.init()
        self._hvd, self.rank, self.barrier, self.end = hvd, hvd.rank(), hvd.barrier, hvd.shutdown

    def distribute(self, name, module, optimizer):
        self._hvd.broadcast_parameters(module.state_dict(), root_rank=0)
        named = [(f"{name}.{key}", parameter) for key, parameter in module.named_parameters()]
        return module, self._hvd.DistributedOptimizer(optimizer, named_parameters=named)


class Ddp:
    def __init__(self, view, backend, store, rank, size):
        import torch.distributed as dist

        if backend == "hvd":
            import horovod.torch.distributed  # noqa: F401
        dist.init_process_group(backend, init_method=f"file://{store}", rank=int(rank), world_size=int(size))
        self._view, self.rank, self.barrier, self.end = view, int(rank), dist.barrier, dist.destroy_process_group

    def distribute(self, name, module, optimizer):
        return torch.nn.parallel.DistributedDataParallel(module, gradient_as_bucket_view=self._view), optimizer


def keep_memory():
    """Has glibc keep freed memory. Otherwise each step's gradients are new pages from the kernel, which takes as long as their communication, and
    only in those ways in which they live until the next step."""
    mallopt = ctypes.CDLL(None).mallopt
    mallopt(-1, 1 << 30)  # M_TRIM_THRESHOLD
    mallopt(-3, 32 << 20)  # M_MMAP_THRESHOLD


def main():
    keep_memory()
    how, path, name, *group = sys.argv[1:]
    torch.set_num_threads(1)
    torch.manual_seed(1)
    library = (
        Hvd()
        if how == "hvd"
        else Local(*group)
        if how == "local"
        else Ddp(how.endswith("-view"), "hvd" if "hvd" in how else "gloo", *group)
    )
    steps = {}

    def make_step(model, batch):
        module, plain, loss_of = make(model, batch)
        network, optimizer = library.distribute(f"{model}-{batch}", module, plain)

        def step():
            optimizer.zero_grad(set_to_none=True)
            loss_of(network).backward()
            optimizer.step()

        return step

    def handle(operation, element_type, size, calls, block):
        if (operation, size) not in steps:
            steps.clear()
            steps[operation, size] = make_step(operation, size)
        library.barrier()
        return time_calls(steps[operation, size], calls, block)

    serve(path, name, library.rank, handle)
    library.end()


main()
