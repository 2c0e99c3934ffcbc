"""A few operations and a step of training, for tools that slow everything down."""

import torch

from gpu_rank import device, hvd

for size in (1, 1000, 1 << 18):
    assert (hvd.allreduce(torch.ones(size, device=device), op=hvd.Sum) == hvd.size()).all().item()
    assert len(hvd.allgather(torch.ones(size, device=device))) == size * hvd.size()
    hvd.broadcast_(torch.ones(size, device=device), 0)
model = torch.nn.Linear(64, 64).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
hvd.broadcast_parameters(model.state_dict(), root_rank=0)
for _ in range(3):
    optimizer.zero_grad()
    model(torch.ones(8, 64, device=device)).square().mean().backward()
    optimizer.step()
hvd.shutdown()
