"""torch.compile of a model whose optimizer is distributed: the same training as without it."""

import torch
import torch.nn.functional as F

import networks
from checks import check, run_all
from gpu_rank import IS_SIMULATED, device, hvd

OPTIONS = {"backend": "aot_eager"} if IS_SIMULATED else {}


def trained(compiled):
    model = networks.make("convolutions", 1).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    named = [(f"{compiled}.{name}", value) for name, value in model.named_parameters()]
    optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=named)
    network = torch.compile(model, **OPTIONS) if compiled else model
    own = slice(8 * hvd.rank(), 8 * (hvd.rank() + 1))
    for inputs, targets in networks.batches("convolutions", 5, 8 * hvd.size()):
        optimizer.zero_grad()
        F.cross_entropy(network(inputs[own].to(device)), targets[own].to(device)).backward()
        optimizer.step()
    return model.state_dict()


@check
def compiled_training_equals_eager():
    compiled, eager = trained(True), trained(False)
    for name, value in eager.items():
        torch.testing.assert_close(compiled[name], value, rtol=2e-3, atol=2e-4, msg=name)


@check
def operations_within_a_compiled_function():
    @torch.compile(**OPTIONS)
    def step(x):
        return hvd.allreduce(x * 2.0, op=hvd.Sum) + 1.0

    for turn in range(3):
        assert (step(torch.full((1000,), float(turn), device=device)) == 2 * turn * hvd.size() + 1).all().item()


run_all()
