"""torch.compile, whose first compilation takes long."""


def test_compiled_training(checks):
    checks("compiled.py", 2, 75)
