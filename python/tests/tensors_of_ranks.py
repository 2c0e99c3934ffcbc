"""Common code of the tests of collectives."""

import torch

import horovod.torch as hvd

INTEGERS = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64]
FLOATS = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
NUMBERS = INTEGERS + FLOATS
ALL = NUMBERS + [torch.bool]


def ranks_sum(values):
    """Sum over all ranks of `values(rank)`."""
    return sum(values(rank) for rank in range(hvd.size()))
