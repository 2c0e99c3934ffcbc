"""Trains on the simulated device, as one process does on the joined batches on its CPU; and what of a model, an optimizer or an elastic state is
broadcast, saved and restored stays on the device."""

import copy

import torch

import horovod.torch as hvd
import intel_extension_for_pytorch as ipex

hvd.init()
torch.xpu.set_device(hvd.local_rank())
DEVICE = torch.device(f"xpu:{hvd.local_rank()}")
BATCH, STEPS = 6, 4


def batches():
    """The joined batches, and this rank's part of each."""
    generator = torch.Generator().manual_seed(0)
    own = slice(BATCH * hvd.rank(), BATCH * (hvd.rank() + 1))
    for _ in range(STEPS):
        inputs = torch.randn(BATCH * hvd.size(), 5, generator=generator)
        targets = torch.randn(BATCH * hvd.size(), 1, generator=generator)
        yield (inputs, targets), (inputs[own].to(DEVICE), targets[own].to(DEVICE))


def model_of(seed, normalized=False):
    torch.manual_seed(seed)
    middle = torch.nn.BatchNorm1d(8) if normalized else torch.nn.Tanh()
    return torch.nn.Sequential(torch.nn.Linear(5, 8), middle, torch.nn.Linear(8, 1))


def train(model, optimizer, parts, per_step=1):
    parts = list(parts)
    for first in range(0, len(parts), per_step):
        optimizer.zero_grad()
        for inputs, targets in parts[first : first + per_step]:
            (model(inputs) - targets).square().mean().div(per_step).backward()
        optimizer.step()


def on_device(tree):
    """Returns all of its tensors, except the counters of optimizers, which torch keeps on the host."""
    if isinstance(tree, dict):
        return all(on_device(value) for key, value in tree.items() if key != "step")
    if isinstance(tree, (list, tuple)):
        return all(map(on_device, tree))
    return not isinstance(tree, torch.Tensor) or tree.device == DEVICE


def same(found, expected, **tolerance):
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        torch.testing.assert_close(found[name].cpu(), value.cpu(), **tolerance)


def same_on_all_ranks(state):
    for name, value in sorted(state.items()):
        torch.testing.assert_close(hvd.broadcast(value, 0), value, rtol=0, atol=0, msg=name)


OPTIMIZERS = {
    "SGD": lambda model: torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9),
    "Adam": lambda model: torch.optim.Adam(model.parameters(), lr=0.01),
}


def optimizer_equals_one_process(kind, per_step=1, tolerance=None, **options):
    model, alone = model_of(0).to(DEVICE), model_of(0)
    optimizer = hvd.DistributedOptimizer(
        OPTIMIZERS[kind](model), model.named_parameters(), backward_passes_per_step=per_step, **options
    )
    train(model, optimizer, [part for _, part in batches()], per_step)
    train(alone, OPTIMIZERS[kind](alone), [joined for joined, _ in batches()], per_step)
    assert on_device(model.state_dict()) and on_device(optimizer.state_dict())
    same(model.state_dict(), alone.state_dict(), **(tolerance or {}))


def hooks_reduce_what_is_queued():
    """The gradient of a sum of weights needs no wait on the device."""
    weight = torch.nn.Parameter(torch.zeros(3, device=DEVICE))
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD([weight], lr=1.0), [("weight", weight)])
    weight.backward(torch.zeros(3, device=DEVICE).add_(hvd.rank() + 1))
    optimizer.step()
    assert ipex.pending() > 0
    expected = -(hvd.size() + 1) / 2
    assert weight.detach().cpu().tolist() == [expected] * 3


def adasum():
    model, on_host = model_of(0).to(DEVICE), model_of(0)
    for each, place in ((model, DEVICE), (on_host, torch.device("cpu"))):
        optimizer = hvd.DistributedOptimizer(OPTIMIZERS["SGD"](each), each.named_parameters(), op=hvd.Adasum)
        train(each, optimizer, [[values.to(place) for values in part] for _, part in batches()])
    same(model.state_dict(), on_host.state_dict())


def gradient_scaler():
    """Plain code: a gradient that overflows on one rank makes all skip the step."""
    model = model_of(0).to(DEVICE)
    optimizer = hvd.DistributedOptimizer(OPTIMIZERS["SGD"](model), model.named_parameters())
    scaler = torch.amp.GradScaler("xpu", init_scale=1024.0)
    scales = []
    for step, (_, (inputs, _)) in enumerate(batches()):
        optimizer.zero_grad()
        overflow = float("inf") if step == 1 and hvd.rank() == hvd.size() - 1 else 1.0
        scaler.scale(model(inputs).mean() * overflow).backward()
        scaler.step(optimizer)
        scaler.update()
        scales.append(scaler.get_scale())
    assert scales == [1024, 512, 512, 512]
    assert all(value.isfinite().all() for value in model.state_dict().values())
    same_on_all_ranks(model.state_dict())


def sync_batch_norm():
    model, alone = model_of(0, normalized=True).to(DEVICE), model_of(0, normalized=True)
    model[1] = hvd.SyncBatchNorm(8).to(DEVICE)
    optimizer = hvd.DistributedOptimizer(OPTIMIZERS["SGD"](model), model.named_parameters())
    train(model, optimizer, [part for _, part in batches()])
    train(alone, OPTIMIZERS["SGD"](alone), [joined for joined, _ in batches()])
    same(model.state_dict(), alone.state_dict())


def broadcasts():
    root = hvd.size() - 1
    model = model_of(hvd.rank(), normalized=True).to(DEVICE)
    places = {name: value.data_ptr() for name, value in model.state_dict().items()}
    model[0].weight.detach().add_(1)  # queued
    hvd.broadcast_parameters(model.state_dict(), root_rank=root)
    expected = model_of(root, normalized=True)
    expected[0].weight.detach().add_(1)
    same(model.state_dict(), expected.state_dict(), rtol=0, atol=0)
    assert {name: value.data_ptr() for name, value in model.state_dict().items()} == places
    transposed = torch.full((2, 3), float(hvd.rank()), device=DEVICE).t()
    hvd.broadcast_parameters([("transposed", transposed)], root_rank=root)
    assert transposed.cpu().tolist() == [[root] * 2] * 3
    optimizer = OPTIMIZERS["Adam"](model)
    if hvd.rank() == root:
        train(model, optimizer, [part for _, part in batches()])
    hvd.broadcast_optimizer_state(optimizer, root_rank=root)
    state = optimizer.state_dict()
    assert len(state["state"]) == len(list(model.parameters())) and on_device(state)
    for number, values in state["state"].items():
        same_on_all_ranks({f"{number}.{name}": value for name, value in values.items()})


def elastic_state():
    model = model_of(hvd.rank()).to(DEVICE)
    optimizer = OPTIMIZERS["Adam"](model)
    train(model, optimizer, [part for _, part in batches()])
    state = hvd.elastic.TorchState(model, optimizer, batch=hvd.rank())
    state.sync()
    same_on_all_ranks(model.state_dict())
    assert state.batch == 0 and on_device(model.state_dict()) and on_device(optimizer.state_dict())
    model[0].weight.detach().add_(1)  # queued
    state.batch = 7
    state.commit()
    kept = copy.deepcopy((model.state_dict(), optimizer.state_dict()["state"]))
    train(model, optimizer, [part for _, part in batches()])
    state.batch = 8
    state.restore()
    assert state.batch == 7
    same(model.state_dict(), kept[0], rtol=0, atol=0)
    for number, values in optimizer.state_dict()["state"].items():
        same(values, kept[1][number], rtol=0, atol=0)
    assert on_device(model.state_dict()) and on_device(optimizer.state_dict())


for kind in OPTIMIZERS:
    optimizer_equals_one_process(kind)
optimizer_equals_one_process("SGD", per_step=2)
optimizer_equals_one_process("SGD", groups=2)
optimizer_equals_one_process("SGD", gradient_predivide_factor=2.0)
optimizer_equals_one_process("SGD", compression=hvd.Compression.fp16, tolerance=dict(rtol=1e-2, atol=1e-3))
for scenario in (hooks_reduce_what_is_queued, adasum, gradient_scaler, sync_batch_norm, broadcasts, elastic_state):
    scenario()
print("done")
