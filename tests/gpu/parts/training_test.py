"""Trainings on the GPU, which equal the same training on the CPU."""

import pytest


@pytest.mark.parametrize("ranks", [2, 1])
def test_training_equals_that_on_the_cpu(checks, ranks):
    checks("training.py", ranks, 50, "-x", "HOROVOD_DYNAMIC_PROCESS_SETS=1")
