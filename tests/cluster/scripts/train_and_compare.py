"""Trains a small network on batches that depend on the step only, each rank on its part of them; checks in every step that all ranks have the same
gradients, and writes the last weights to the file named.

    train_and_compare.py WEIGHTS_FILE STEPS
"""

import sys

import torch

import horovod.torch as hvd

BATCH = 24  # divides by 1, 2, 3 and 4 ranks

hvd.init()
torch.manual_seed(1 + hvd.rank())  # different weights until rank 0's are broadcast
model = torch.nn.Sequential(torch.nn.Linear(20, 32), torch.nn.Tanh(), torch.nn.Linear(32, 5)).double()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
hvd.broadcast_parameters(model.state_dict(), root_rank=0)
hvd.broadcast_optimizer_state(optimizer, root_rank=0)

part = slice(hvd.rank() * BATCH // hvd.size(), (hvd.rank() + 1) * BATCH // hvd.size())
for step in range(int(sys.argv[2])):
    generator = torch.Generator().manual_seed(1000 + step)
    inputs = torch.randn(BATCH, 20, generator=generator, dtype=torch.float64)
    labels = torch.randint(0, 5, (BATCH,), generator=generator)
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(inputs[part]), labels[part]).backward()
    optimizer.synchronize()
    gradients = torch.cat([p.grad.flatten() for p in model.parameters()])
    all_gradients = hvd.allgather(gradients.unsqueeze(0), name="compare")
    assert all(torch.equal(row, gradients) for row in all_gradients), f"gradients differ in step {step}"
    with optimizer.skip_synchronize():
        optimizer.step()

if hvd.rank() == 0:
    torch.save(model.state_dict(), sys.argv[1])
    print(f"trained on {hvd.size()} ranks", flush=True)
