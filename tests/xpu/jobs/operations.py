"""Every operation of horovod.torch on tensors of the simulated device: what its stream has not done yet is reduced, results are on the device
before whatever is queued next, and in place means in the same memory."""

import torch

import horovod.torch as hvd
import intel_extension_for_pytorch as ipex

hvd.init()
torch.xpu.set_device(hvd.local_rank())
DEVICE = f"xpu:{hvd.local_rank()}"
RANKS = range(hvd.size())


def queued(rank=None, shape=(4, 3), dtype=torch.float32):
    """Numbers of a rank; this rank's are on the device, where nothing has been computed yet."""
    first = 1 + (hvd.rank() if rank is None else rank)
    values = torch.arange(first, first + torch.Size(shape).numel()).reshape(shape).to(dtype)
    if rank is not None:
        return values
    tensor = torch.zeros(shape, dtype=dtype, device=DEVICE)
    torch.xpu.synchronize()
    tensor.add_(values.to(DEVICE))
    assert ipex.pending() > 0
    return tensor


def of_all(*args):
    return torch.stack([queued(rank, *args) for rank in RANKS])


def check(result, expected):
    """Checks the result, also for operations that are queued now."""
    assert result.device == torch.device(DEVICE) and result.dtype == expected.dtype
    doubled = torch.empty_like(result).copy_(result).mul_(2)
    result.mul_(0)
    assert torch.equal(doubled.cpu(), expected * 2), (doubled.cpu(), expected * 2)


def in_place(operation, expected):
    tensor = queued()
    place = tensor.data_ptr()
    assert operation(tensor) is tensor and tensor.data_ptr() == place
    check(tensor, expected)


def allreduce():
    total = of_all().sum(0)
    tensor = queued()
    check(hvd.allreduce(tensor, op=hvd.Sum), total)
    check(tensor, queued(hvd.rank()))
    check(hvd.allreduce(queued()), total / hvd.size())
    check(hvd.allreduce(queued(), op=hvd.Adasum), hvd.allreduce(queued(hvd.rank()), op=hvd.Adasum))
    check(hvd.allreduce(queued(), op=hvd.Sum, compression=hvd.Compression.fp16), total)
    in_place(lambda tensor: hvd.allreduce_(tensor, op=hvd.Sum), total)
    in_place(lambda tensor: hvd.synchronize(hvd.allreduce_async_(tensor, op=hvd.Max)), of_all().amax(0))
    for dtype in (torch.uint8, torch.int64, torch.float16, torch.bfloat16, torch.float64):
        check(hvd.allreduce(queued(dtype=dtype), op=hvd.Sum), of_all((4, 3), dtype).sum(0).to(dtype))
    part = queued()
    hvd.allreduce_(part[1:3], op=hvd.Sum)
    check(part, torch.cat([queued(hvd.rank())[:1], total[1:3], queued(hvd.rank())[3:]]))


def grouped_allreduce():
    tensors = [queued(), queued(shape=(2,), dtype=torch.int64), queued(hvd.rank())]  # the last one is the host's
    results = hvd.grouped_allreduce(tensors, op=hvd.Sum)
    check(results[0], of_all().sum(0))
    check(results[1], of_all((2,), torch.int64).sum(0))
    assert torch.equal(results[2], of_all().sum(0))
    tensors = [queued(), queued()]
    for result, tensor in zip(hvd.grouped_allreduce_(tensors, op=hvd.Sum), tensors):
        assert result is tensor
        check(result, of_all().sum(0))


def others():
    rank, size = hvd.rank(), hvd.size()
    check(hvd.allgather(queued(shape=(rank + 1, 2))), torch.cat([queued(each, (each + 1, 2)) for each in RANKS]))
    check(hvd.grouped_allgather([queued()])[0], torch.cat([*of_all()]))
    for root in RANKS:
        check(hvd.broadcast(queued(), root), queued(root))
        in_place(lambda tensor, root=root: hvd.broadcast_(tensor, root), queued(root))
    check(hvd.alltoall(queued(shape=(size, 2))), of_all((size, 2))[:, rank])
    splits = torch.arange(size, dtype=torch.int32)
    rows, received = hvd.alltoall(queued(shape=(int(splits.sum()), 2)), splits.to(DEVICE))
    first = int(splits[:rank].sum())
    check(rows, torch.cat([queued(each, (int(splits.sum()), 2))[first : first + rank] for each in RANKS]))
    check(received, torch.full((size,), rank, dtype=torch.int32))
    check(hvd.reducescatter(queued(shape=(size, 2)), op=hvd.Sum), of_all((size, 2)).sum(0)[rank : rank + 1])
    check(hvd.grouped_reducescatter([queued(shape=(size,))], op=hvd.Sum)[0], of_all((size,)).sum(0)[rank : rank + 1])


def gradients():
    tensor = queued().requires_grad_()
    hvd.allreduce(tensor, op=hvd.Sum).mul(3).sum().backward()
    check(tensor.grad, torch.full((4, 3), 3.0 * hvd.size()))
    tensor = queued().requires_grad_()
    (hvd.allgather(tensor) * (hvd.rank() + 1)).sum().backward()
    check(tensor.grad, torch.full((4, 3), sum(rank + 1 for rank in RANKS) / hvd.size()))


def many_at_once():
    """In the order in which they become ready, not in that of the calls."""
    handles = [hvd.allreduce_async_(queued(), name=f"many.{i}", op=hvd.Sum) for i in range(20)]
    for handle in reversed(handles):
        check(hvd.synchronize(handle), of_all().sum(0))


def objects():
    tensor = hvd.broadcast_object(queued() if hvd.rank() == 0 else None, 0)
    assert tensor.device == torch.device("xpu:0") and torch.equal(tensor.cpu(), queued(0))


for scenario in (allreduce, grouped_allreduce, others, gradients, many_at_once, objects):
    scenario()
print("done")
