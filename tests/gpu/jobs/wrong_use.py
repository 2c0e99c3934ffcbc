"""Wrong use: an error that says what is wrong, no hang, and the world stays usable."""

import torch

import horovod.numpy as hnp
from checks import Skipped, check, run_all
from gpu_rank import device, hvd


def refused(expected, function, *arguments, **options):
    """Checks that the call raises a RuntimeError or ValueError whose text has `expected`."""
    try:
        function(*arguments, **options)
    except (RuntimeError, ValueError) as error:
        assert expected in str(error), error
        return
    raise AssertionError(f"not refused; expected: {expected}")


@check
def host_on_one_rank_and_gpu_on_another():
    if hvd.size() == 1:
        raise Skipped("needs two ranks")
    place = torch.device("cpu") if hvd.rank() == 0 else device
    for operation in (hvd.allreduce, hvd.allgather, hvd.alltoall, hvd.reducescatter):
        refused("on the host", operation, torch.ones(hvd.size(), device=place))
    assert hvd.allreduce(torch.ones(1, device=device), op=hvd.Sum).item() == hvd.size()


@check
def tensors_on_two_gpus():
    if torch.cuda.device_count() < 2:
        raise Skipped("needs two GPUs")
    other = torch.device("cuda", (device.index + 1) % torch.cuda.device_count())
    hvd.allreduce(torch.ones(5, device=device))
    on_other = hvd.allreduce(torch.ones(5, device=other), op=hvd.Sum)  # through host memory
    assert on_other.device == other and (on_other == hvd.size()).all().item()
    by_numpy = hnp.allreduce(torch.ones(5, device=other), op=hvd.Sum)  # the device is the process's, not a framework's
    assert by_numpy.device == other and (by_numpy == hvd.size()).all().item()


@check
def types_that_do_not_match():
    dtype = torch.float32 if hvd.rank() == 0 else torch.float64
    if hvd.size() > 1:
        refused("float32", hvd.allreduce, torch.ones(5, device=device, dtype=dtype), name="types")
    assert hvd.allreduce(torch.ones(1, device=device), op=hvd.Sum).item() == hvd.size()


@check
def after_shutdown():
    """The communicator is freed; a new init() makes another one."""
    hvd.shutdown()
    refused("init", hvd.allreduce, torch.ones(5, device=device))
    hvd.init()
    assert hvd.allreduce(torch.ones(1, device=device), op=hvd.Sum).item() == hvd.size()


run_all()
