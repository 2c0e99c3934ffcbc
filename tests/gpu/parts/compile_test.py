"""torch.compile, whose first compilation takes long."""


def test_compiled_training(checks):
    # The ranks compile in themselves: processes that help would import torch first, which takes longer than compiling these models.
    checks("compiled.py", 2, 75, "-x", "TORCHINDUCTOR_COMPILE_THREADS=1")
