"""Trainings on the GPU's ranks, each with its part of every batch, beside the same training in one process on the CPU with the whole batches."""

import torch
import torch.nn.functional as F

import networks
from checks import check, run_all
from gpu_rank import device, hvd

STEPS, BATCH = 5, 8
OWN = slice(BATCH * hvd.rank(), BATCH * (hvd.rank() + 1))


def sgd(model):
    return torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)


def distributed(model, optimizer, **options):
    """The optimizer of this rank's model, whose weights become rank 0's."""
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    return hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters(), **options)


def expect_equal(model, reference, rtol=2e-3, atol=2e-4):
    for name, value in reference.state_dict().items():
        found = model.state_dict()[name].cpu()
        torch.testing.assert_close(found, value, rtol=rtol, atol=atol, msg=f"{name}: {(found - value).abs().max()}")


def expect_same_on_all_ranks(model):
    for name, value in sorted(model.state_dict().items()):
        torch.testing.assert_close(hvd.broadcast(value, 0, name=f"same {name}"), value, rtol=0, atol=0, msg=name)


def train(model, optimizer, batches, clip=None):
    for inputs, targets in batches:
        optimizer.zero_grad()
        F.cross_entropy(model(inputs), targets).backward()
        if clip is not None:
            torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimizer.step()


def both(kind, clip=None, convert=lambda model: model):
    """A model trained here on the GPU, with its part of the batches, and one on the CPU."""
    model, reference = convert(networks.make(kind, 1 + hvd.rank())).to(device), networks.make(kind, 1)
    batches = list(networks.batches(kind, STEPS, BATCH * hvd.size()))
    own = [(inputs[OWN].to(device), targets[OWN].to(device)) for inputs, targets in batches]
    train(model, distributed(model, sgd(model)), own, clip)
    train(reference, sgd(reference), batches, clip)
    return model, reference


@check
def convolution_net_equals_the_cpu():
    model, reference = both("convolutions")
    expect_equal(model, reference)
    expect_same_on_all_ranks(model)


@check
def transformer_equals_the_cpu():
    model, reference = both("transformer")
    expect_equal(model, reference)
    expect_same_on_all_ranks(model)


@check
def plain_loop_with_clipping_equals_the_cpu():
    model, reference = both("convolutions", clip=0.05)
    expect_equal(model, reference)
    expect_same_on_all_ranks(model)


@check
def sync_batch_norm_equals_the_cpu():
    """The statistics are those of the whole batch."""
    model, reference = both("normalized", convert=networks.with_sync_batch_norm)
    expect_equal(model, reference)


@check
def accumulated_gradients_equal_the_cpu():
    model, reference = networks.make("convolutions", 1).to(device), networks.make("convolutions", 1)
    optimizer, plain = distributed(model, sgd(model), backward_passes_per_step=2), sgd(reference)
    batches = list(networks.batches("convolutions", 2 * STEPS, BATCH * hvd.size()))
    for first, second in zip(batches[::2], batches[1::2]):
        optimizer.zero_grad()
        plain.zero_grad()
        for inputs, targets in (first, second):
            (F.cross_entropy(model(inputs[OWN].to(device)), targets[OWN].to(device)) / 2).backward()
            (F.cross_entropy(reference(inputs), targets) / 2).backward()
        optimizer.step()
        plain.step()
    expect_equal(model, reference)


@check
def scaler_skips_a_step_that_overflows_on_one_rank():
    model = networks.make("convolutions", 1).to(device)
    optimizer = distributed(model, sgd(model))
    scaler = torch.amp.GradScaler("cuda", init_scale=1024.0)
    scales = []
    for step, (inputs, targets) in enumerate(networks.batches("convolutions", STEPS, BATCH * hvd.size())):
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            loss = F.cross_entropy(model(inputs[OWN].to(device)), targets[OWN].to(device))
        overflow = float("inf") if step == 1 and hvd.rank() == hvd.size() - 1 else 1.0
        scaler.scale(loss * overflow).backward()
        scaler.step(optimizer)
        scaler.update()
        scales.append(scaler.get_scale())
    assert scales == [1024.0] + [512.0] * (STEPS - 1), scales
    assert all(value.isfinite().all().item() for value in model.state_dict().values())
    expect_same_on_all_ranks(model)


@check
def bfloat16_autocast_stays_near_the_cpu():
    model, reference = networks.make("transformer", 1).to(device), networks.make("transformer", 1)
    optimizer, plain = distributed(model, sgd(model)), sgd(reference)
    for inputs, targets in networks.batches("transformer", STEPS, BATCH * hvd.size()):
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = F.cross_entropy(model(inputs[OWN].to(device)), targets[OWN].to(device))
        loss.backward()
        optimizer.step()
        train(reference, plain, [(inputs, targets)])
    expect_same_on_all_ranks(model)
    expect_equal(model, reference, rtol=0.1, atol=0.05)


@check
def sparse_gradients_equal_the_cpu():
    words = torch.arange(24 * hvd.size()).reshape(hvd.size(), 24) % 50
    model, reference = (torch.nn.Embedding(50, 8, sparse=True) for _ in range(2))
    reference.load_state_dict(hvd.broadcast_object(model.state_dict(), 0, name="embedding"))
    model.to(device)
    optimizer, plain = (
        distributed(model, torch.optim.SGD(model.parameters(), lr=0.1)),
        torch.optim.SGD(reference.parameters(), lr=0.1),
    )
    for _ in range(STEPS):
        optimizer.zero_grad()
        plain.zero_grad()
        model(words[hvd.rank()].to(device)).square().mean().backward()
        reference(words).square().mean().backward()
        optimizer.step()
        plain.step()
    expect_equal(model, reference)


@check
def compressed_gradients_are_near():
    model, reference = networks.make("convolutions", 1).to(device), networks.make("convolutions", 1)
    optimizer = distributed(model, sgd(model), compression=hvd.Compression.fp16)
    batches = list(networks.batches("convolutions", STEPS, BATCH * hvd.size()))
    train(model, optimizer, [(inputs[OWN].to(device), targets[OWN].to(device)) for inputs, targets in batches])
    train(reference, sgd(reference), batches)
    expect_equal(model, reference, rtol=0.05, atol=0.01)


@check
def optimizer_state_is_broadcast():
    model = networks.make("convolutions", 1).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01 * (hvd.rank() + 1))
    for parameter in model.parameters():
        parameter.grad = torch.full_like(parameter, hvd.rank() + 1.0)
    optimizer.step()
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)
    assert optimizer.param_groups[0]["lr"] == 0.01
    for state in optimizer.state.values():
        assert state["exp_avg"].device == device
        torch.testing.assert_close(state["exp_avg"], torch.full_like(state["exp_avg"], 0.1))


@check
def process_sets():
    sets = [hvd.add_process_set([rank]) for rank in range(hvd.size())] if hvd.size() > 1 else []
    for rank, own in enumerate(sets):
        if rank == hvd.rank():
            data = torch.full((1000,), float(rank), device=device)
            assert torch.equal(hvd.allreduce(data, op=hvd.Sum, process_set=own), data)
    assert hvd.allreduce(torch.ones(1, device=device), op=hvd.Sum).item() == hvd.size()
    for own in sets:
        hvd.remove_process_set(own)


@check
def a_rank_without_more_data_joins():
    for _ in range(3 if hvd.rank() == 0 else 1):
        reduced = hvd.allreduce(torch.ones(1000, device=device), op=hvd.Sum, name="uneven")
        assert reduced.device == device
    assert hvd.join() == 0
    assert hvd.allreduce(torch.ones(1, device=device), op=hvd.Sum).item() == hvd.size()


run_all()
