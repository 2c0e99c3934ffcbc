"""docs/elastic.md shows how the rate of each of torch's schedulers follows the number of ranks. In one process."""

import re
import types
from pathlib import Path

import pytest
import torch
from torch.optim import lr_scheduler as schedulers
from torch.optim.swa_utils import SWALR

PAGE = Path(__file__).resolve().parents[2] / "docs/elastic.md"
MADE = {
    "StepLR": lambda o: schedulers.StepLR(o, 3, 0.5),
    "MultiStepLR": lambda o: schedulers.MultiStepLR(o, [2, 5, 8], 0.5),
    "ExponentialLR": lambda o: schedulers.ExponentialLR(o, 0.9),
    "LambdaLR": lambda o: schedulers.LambdaLR(o, lambda epoch: 1 / (1 + epoch)),
    "MultiplicativeLR": lambda o: schedulers.MultiplicativeLR(o, lambda epoch: 0.9),
    "OneCycleLR": lambda o: schedulers.OneCycleLR(o, 0.5, total_steps=20),
    "CosineAnnealingLR": lambda o: schedulers.CosineAnnealingLR(o, 20),
    "CosineAnnealingWarmRestarts": lambda o: schedulers.CosineAnnealingWarmRestarts(o, 5),
    "LinearLR": lambda o: schedulers.LinearLR(o, 0.1, 1, 8),
    "ConstantLR": lambda o: schedulers.ConstantLR(o, 0.1, 6),
    "PolynomialLR": lambda o: schedulers.PolynomialLR(o, 20),
    "CyclicLR": lambda o: schedulers.CyclicLR(o, 0.05, 0.5, step_size_up=4, cycle_momentum=False),
    "ReduceLROnPlateau": lambda o: schedulers.ReduceLROnPlateau(o, factor=0.5, patience=1, min_lr=0.02),
    "SWALR": lambda o: SWALR(o, swa_lr=0.02, anneal_epochs=8),
    "SequentialLR of a cosine": lambda o: schedulers.SequentialLR(
        o, [schedulers.LinearLR(o, 0.1, 1, 6), schedulers.CosineAnnealingLR(o, 14)], [6]
    ),
    "SequentialLR of steps": lambda o: schedulers.SequentialLR(
        o, [schedulers.LinearLR(o, 0.1, 1, 6), schedulers.StepLR(o, 3, 0.5)], [6]
    ),
    "ChainedScheduler": lambda o: schedulers.ChainedScheduler(
        [schedulers.ConstantLR(o, 0.1, 6), schedulers.ExponentialLR(o, 0.9)]
    ),
    "ChainedScheduler of a SequentialLR": lambda o: schedulers.ChainedScheduler(
        [
            schedulers.ExponentialLR(o, 0.9),
            schedulers.SequentialLR(o, [schedulers.StepLR(o, 3, 0.5), schedulers.CosineAnnealingLR(o, 14)], [6]),
        ]
    ),
}


def functions_of_page():
    """The text of the functions in the block that has follow_size."""
    (block,) = [
        text for text in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.S) if "def follow_size" in text
    ]
    return block[block.index("def follow_size") : block.index("@hvd.elastic.run")]


def rates(make, factor):
    """The rates of 18 epochs; the number of ranks is multiplied before the fifth."""
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=0.1, momentum=0.9)
    scheduler = make(optimizer)
    hvd = types.SimpleNamespace(size=lambda: 2 * factor)
    names = {"optimizer": optimizer, "scheduler": scheduler, "hvd": hvd}
    exec(functions_of_page(), names)
    state, found = types.SimpleNamespace(rate_size=2), []
    for epoch in range(18):
        if epoch == 4:
            names["follow_size"](state)
            assert state.rate_size == 2 * factor
        optimizer.step()
        scheduler.step(*[1.0] if "Plateau" in type(scheduler).__name__ else [])
        found.append(optimizer.param_groups[0]["lr"])
    return found


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", MADE)
def test_rate_follows_the_size(name):
    before, scaled = rates(MADE[name], 1), rates(MADE[name], 3)
    assert scaled[:4] == before[:4] and len(set(before)) > 1
    assert scaled[4:] == pytest.approx([3 * rate for rate in before[4:]])
