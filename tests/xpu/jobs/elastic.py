"""An elastic training on the simulated device, which loses a rank once and waits for another one. All ranks have the same batches, so what comes
out is what one process makes on its CPU."""

import os
import signal

import torch

import horovod.torch as hvd
import intel_extension_for_pytorch  # noqa: F401

RANKS, LOSS, STEPS = 2, 3, 6

hvd.init()
torch.xpu.set_device(hvd.local_rank())
DEVICE = torch.device(f"xpu:{hvd.local_rank()}")


def training(device):
    torch.manual_seed(0)
    model = torch.nn.Linear(5, 1).to(device)
    return model, torch.optim.Adam(model.parameters(), lr=0.1)


def step(model, optimizer, batch, device):
    inputs = torch.arange(10.0).reshape(2, 5).add(batch).to(device)
    optimizer.zero_grad()
    model(inputs).square().mean().backward()
    optimizer.step()


@hvd.elastic.run
def train(state):
    if hvd.size() == RANKS:
        print(f"rank {hvd.rank()} begins with step {state.batch}", flush=True)
    while state.batch < STEPS:
        if hvd.size() == RANKS:
            step(model, optimizer, state.batch, DEVICE)
            state.batch += 1
        state.commit()
        if (state.batch, hvd.rank(), hvd.size()) == (LOSS, RANKS - 1, RANKS):
            os.kill(os.getpid(), signal.SIGKILL)


model, optimizer = training(DEVICE)
optimizer = hvd.DistributedOptimizer(optimizer, model.named_parameters())
train(hvd.elastic.TorchState(model, optimizer, batch=0))

expected, alone = training("cpu")
for batch in range(STEPS):
    step(expected, alone, batch, "cpu")
for found, value in zip(model.parameters(), expected.parameters()):
    assert found.device == DEVICE
    torch.testing.assert_close(found.cpu(), value)
print("done")
