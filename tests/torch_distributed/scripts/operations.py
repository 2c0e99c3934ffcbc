"""Every operation of torch.distributed on the backend hvd, with values that are computed here: operations.py STORE RANK RANKS"""

import concurrent.futures
import datetime
import sys
from typing import Callable

import torch
import torch.distributed as dist

import horovod.torch.distributed  # noqa: F401

store, rank, size = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
torch.set_num_threads(1)
dist.init_process_group("hvd", init_method=store, rank=rank, world_size=size, timeout=datetime.timedelta(seconds=60))
NUMBERS = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64]
FLOATS = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
COMPLEX = [torch.complex64, torch.complex128]
gather_into = getattr(dist, "all_gather_into_tensor", dist._all_gather_base)
reduce_scatter_into = getattr(dist, "reduce_scatter_tensor", dist._reduce_scatter_base)


def own(dtype: torch.dtype, count: int = 6, of: int = rank) -> torch.Tensor:
    values = torch.arange(count) % 3 + of + 1
    return values.to(dtype) * (1 + 2j) if dtype in COMPLEX else values.to(dtype)


def all_of(dtype: torch.dtype, count: int = 6) -> torch.Tensor:
    return torch.stack([own(dtype, count, of) for of in range(size)])


def check(found: torch.Tensor, wanted: torch.Tensor) -> None:
    assert found.dtype == wanted.dtype, (found, wanted)
    assert torch.equal(found, wanted), (found, wanted)


def test_all_reduce() -> None:
    reductions = [
        (dist.ReduceOp.SUM, lambda x: x.sum(0)),
        (dist.ReduceOp.MIN, lambda x: x.min(0).values),
        (dist.ReduceOp.MAX, lambda x: x.max(0).values),
        (dist.ReduceOp.PRODUCT, lambda x: x.prod(0)),
    ]
    for dtype in NUMBERS + FLOATS:
        for op, expected in reductions:
            tensor = own(dtype)
            dist.all_reduce(tensor, op=op)
            check(tensor, expected(all_of(torch.float64)).to(dtype))
    for dtype in COMPLEX:
        tensor = own(dtype)
        dist.all_reduce(tensor)
        check(tensor, all_of(dtype).sum(0))
    for dtype in FLOATS:
        tensor = own(dtype)
        dist.all_reduce(tensor, op=dist.ReduceOp.AVG)
        check(tensor, (all_of(torch.float64).sum(0) / size).to(dtype))


def test_bits() -> None:
    for dtype in [*NUMBERS, torch.bool]:
        for op, expected in (
            (dist.ReduceOp.BAND, torch.bitwise_and),
            (dist.ReduceOp.BOR, torch.bitwise_or),
            (dist.ReduceOp.BXOR, torch.bitwise_xor),
        ):
            tensor, wanted = own(dtype), own(dtype, of=0)
            dist.all_reduce(tensor, op=op)
            for other in range(1, size):
                wanted = expected(wanted, own(dtype, of=other))
            check(tensor, wanted)


def test_shapes() -> None:
    for tensor in (torch.tensor(1.0), torch.empty(0), torch.ones(2, 0, 3), torch.ones(2, 3, 4)):
        dist.all_reduce(tensor)
        assert torch.equal(tensor, torch.full_like(tensor, size))
    strided = torch.zeros(4, 6)
    dist.all_reduce(strided[:, ::2].add_(1))
    check(strided[:, ::2], torch.full((4, 3), float(size)))
    check(strided[:, 1::2], torch.zeros(4, 3))
    transposed = torch.arange(6.0).view(2, 3).t()
    dist.broadcast(transposed.add_(rank), size - 1)
    check(transposed, torch.arange(6.0).view(2, 3).t() + size - 1)


def test_waiting_for_a_time() -> None:
    short = datetime.timedelta(milliseconds=20)
    start = torch.zeros(1)
    if rank == 0:
        work = dist.all_reduce(torch.ones(1), async_op=True)
        for peer in range(1, size):
            expect_error(lambda: work.wait(short), "timeout of 0.02 s is over")
            receive = dist.irecv(torch.empty(1), peer)
            expect_error(lambda receive=receive: receive.wait(short), "timeout of 0.02 s is over")
            dist.send(start, peer)  # which does the rest
            receive.wait(datetime.timedelta(seconds=60))
    else:
        dist.recv(start, 0)
        dist.send(start, 0)
        work = dist.all_reduce(torch.ones(1), async_op=True)
    assert work.wait(datetime.timedelta(seconds=60))


def test_refusals() -> None:
    """Mistakes of one rank alone: RuntimeErrors as those of torch's backends, before anything has begun."""
    group, ones = dist.group.WORLD, torch.ones(2)
    refused = {
        "tag of a message is 0 or more, not -1": lambda: group.send([ones], 0, -1),
        "tag of a message is 0 or more, not -2": lambda: group.recv([ones], 0, -2),
        f"no rank {size} in a group": lambda: group.send([ones], size, 0),
        "is one tensor": lambda: group.send([ones, ones], 0, 0),
        f"no root rank {size} in a group": lambda: dist.broadcast(ones, size),
        "no root rank -1 in a group": lambda: group.reduce([ones], root=-1),
        "output tensors for": lambda: group.allgather([[ones]], [ones]),
        "elements": lambda: gather_into(torch.ones(1), ones),
        "can't be divided evenly": lambda: dist.all_to_all_single(torch.ones(1), torch.ones(1)),
        "dense tensors": lambda: group.alltoall([ones.to_sparse()], [ones.to_sparse()]),
    }
    for text, call in refused.items():
        expect_error(call, text)


def expect_error(call: Callable[[], object], text: str) -> None:
    try:
        call()
    except RuntimeError as error:
        assert text in str(error), error
    else:
        raise AssertionError(f"no error: {text}")


def test_sparse() -> None:
    tensor = torch.sparse_coo_tensor([[rank, size]], [1.0, 2.0], (size + 1,))
    dist.all_reduce(tensor)
    check(tensor.to_dense(), torch.tensor([1.0] * size + [2.0 * size]))


def test_broadcast_and_reduce() -> None:
    for dtype in [*NUMBERS, *FLOATS, *COMPLEX, torch.bool]:
        for root in range(size):
            tensor = own(dtype)
            dist.broadcast(tensor, root)
            check(tensor, own(dtype, of=root))
    tensor = own(torch.float32)
    dist.reduce(tensor, size - 1)
    check(tensor, all_of(torch.float32).sum(0) if rank == size - 1 else own(torch.float32))


def test_gathers() -> None:
    for dtype in [*NUMBERS, *FLOATS, *COMPLEX, torch.bool]:
        outputs = [torch.empty(6, dtype=dtype) for _ in range(size)]
        dist.all_gather(outputs, own(dtype))
        check(torch.stack(outputs), all_of(dtype))
        flat = torch.empty(6 * size, dtype=dtype)
        gather_into(flat, own(dtype))
        check(flat.view(size, 6), all_of(dtype))
    uneven = [torch.empty(of) for of in range(size)]
    dist.all_gather(uneven, own(torch.float32, rank))
    for of, output in enumerate(uneven):
        check(output, own(torch.float32, of, of))
    at_root = [torch.empty(6) for _ in range(size)] if rank == 0 else None
    dist.gather(own(torch.float32), at_root, 0)
    if at_root is not None:
        check(torch.stack(at_root), all_of(torch.float32))
    if hasattr(dist, "gather_single"):  # since torch 2.14
        flat = torch.empty(6 * size) if rank == 0 else None
        dist.gather_single(own(torch.float32), flat, 0)
        if flat is not None:
            check(flat.view(size, 6), all_of(torch.float32))
    output = torch.empty(6)
    dist.scatter(output, list(all_of(torch.float32)) if rank == size - 1 else None, size - 1)
    check(output, own(torch.float32))


def test_reduce_scatter() -> None:
    for dtype in NUMBERS + FLOATS + COMPLEX:
        output = torch.empty(2, dtype=dtype)
        reduce_scatter_into(output, own(dtype, 2 * size))
        check(output, all_of(dtype, 2 * size).sum(0).to(dtype)[2 * rank : 2 * rank + 2])
    inputs = [torch.full((of,), 1.0 + rank) for of in range(size)]
    output = torch.empty(rank)
    dist.reduce_scatter(output, inputs)
    check(output, torch.full((rank,), sum(range(size + 1)) * 1.0))


def test_all_to_all() -> None:
    output = torch.empty(2 * size, 3)
    dist.all_to_all_single(output, torch.full((2 * size, 3), float(rank)))
    check(output, torch.arange(float(size)).repeat_interleave(6).view(2 * size, 3))
    sends = [(rank + to) % 3 for to in range(size)]
    receives = [(of + rank) % 3 for of in range(size)]
    output = torch.empty(sum(receives), dtype=torch.int64)
    dist.all_to_all_single(output, torch.full((sum(sends),), rank), receives, sends)
    check(output, torch.cat([torch.full((count,), of) for of, count in enumerate(receives)]))
    outputs = [torch.empty(of + 1) for of in range(size)]
    dist.all_to_all(outputs, [torch.full((rank + 1,), float(to)) for to in range(size)])
    for of, found in enumerate(outputs):
        check(found, torch.full((of + 1,), float(rank)))


def test_functional() -> None:
    if not hasattr(dist, "_functional_collectives"):
        return
    gathered = dist._functional_collectives.all_gather_tensor(own(torch.float32), 0, list(range(size)))
    dist.all_reduce(gathered)  # of a result that nobody has waited for
    check(gathered.wait(), all_of(torch.float32).view(-1) * size)


def test_objects() -> None:
    objects: list = [None] * size
    dist.all_gather_object(objects, {"rank": rank, "text": "x" * rank})
    assert objects == [{"rank": of, "text": "x" * of} for of in range(size)]
    shared = [rank, "own"] if rank else ["first", {1}]
    dist.broadcast_object_list(shared, 0)
    assert shared == ["first", {1}]


def test_async() -> None:
    tensors = [torch.full((1000,), float(i)) for i in range(20)]
    works = [dist.all_reduce(tensor, async_op=True) for tensor in tensors]
    for i in reversed(range(20)):
        works[i].wait()
        check(tensors[i], torch.full((1000,), float(i * size)))
        assert works[i].is_completed()
    future = dist.all_reduce(torch.ones(3), async_op=True).get_future()
    assert torch.equal(future.wait()[0], torch.full((3,), float(size)))
    for _ in range(20):  # several threads wait for one work
        tensor = torch.ones(1000)
        work = dist.all_reduce(tensor, async_op=True)
        future = work.get_future()
        with concurrent.futures.ThreadPoolExecutor(3) as threads:
            assert all(threads.map(lambda work: work.wait(), [work] * 3))
        future.wait()
        check(tensor, torch.full((1000,), float(size)))
    dist.all_reduce(torch.ones(100000), async_op=True)  # nobody waits for it
    dist.barrier()


def test_messages() -> None:
    to, source = (rank + 1) % size, (rank - 1) % size
    for count in (0, 1, 1000, 300000):
        for dtype in (torch.float32, torch.complex64, torch.bool):
            received = torch.empty(count, dtype=dtype)
            works = [dist.isend(own(dtype, count), to), dist.irecv(received, source)]
            for work in works:
                work.wait()
            check(received, own(dtype, count, source))
    # Tags choose, and any order of waiting is right.
    first, second = torch.empty(1), torch.empty(1)
    works = [dist.isend(torch.tensor([float(tag)]), to, tag=tag) for tag in (1, 2)]
    dist.recv(second, source, tag=2)
    dist.recv(first, source, tag=1)
    for work in works:
        work.wait()
    assert (first.item(), second.item()) == (1, 2)
    # Futures of messages do not hold up those of collectives.
    late = torch.empty(1)
    of_message = dist.irecv(late, source, tag=3).get_future()
    dist.all_reduce(torch.ones(1), async_op=True).get_future().wait()
    dist.send(torch.tensor([float(rank)]), to, tag=3)
    assert of_message.wait()[0].item() == source
    # A message beside a collective that comes in between.
    late = torch.empty(300000)
    receiving = dist.irecv(late, source)
    dist.barrier()
    dist.send(torch.full((300000,), float(rank)), to) if rank % 2 else None
    sending = None if rank % 2 else dist.isend(torch.full((300000,), float(rank)), to)
    receiving.wait()
    if sending is not None:
        sending.wait()
    check(late, torch.full((300000,), float(source)))
    if rank == 0:
        sources = []
        for _ in range(size - 1):
            token = torch.empty(1)
            sources.append(dist.recv(token, tag=7))
            assert token.item() == sources[-1]
        assert sorted(sources) == list(range(1, size))
    else:
        dist.send(torch.tensor([float(rank)]), 0, tag=7)
    strided = torch.zeros(4, 4)
    works = dist.batch_isend_irecv(
        [dist.P2POp(dist.isend, torch.arange(4.0), to), dist.P2POp(dist.irecv, strided[:, 1], source)]
    )
    for work in works:
        work.wait()
    check(strided[:, 1], torch.arange(4.0))


def test_groups() -> None:
    alone = dist.new_group([0])
    pair = dist.new_group([0, 1])
    if rank == 0:
        tensor = torch.ones(2)
        dist.all_reduce(tensor, group=alone)
        check(tensor, torch.ones(2))
    if rank < 2:
        tensor = torch.full((2,), float(rank + 1))
        dist.all_reduce(tensor, group=pair)
        check(tensor, torch.full((2,), 3.0))
    members = [size - 2, size - 1]
    part = dist.group.WORLD.split_group(members)
    assert (part is None) == (rank not in members)
    if part is not None:
        tensor = torch.full((2,), float(rank))
        part.allreduce([tensor]).wait()
        check(tensor, torch.full((2,), float(sum(members))))
    dist.monitored_barrier(timeout=datetime.timedelta(seconds=60))


def test_what_is_not_supported() -> None:
    """What torch 2.14 asks by dist._supports_reconfigure() and dist._supports_window()."""
    assert dist.group.WORLD.supports_reconfigure is False
    assert dist.group.WORLD.supports_window is False


def test_forms_of_methods() -> None:
    group = dist.group.WORLD
    tensor = own(torch.float32)
    group.allreduce(tensor, dist.ReduceOp.MAX).wait()
    check(tensor, own(torch.float32, of=size - 1))
    tensor = own(torch.float32)
    group.broadcast(tensor, root=0).wait()
    check(tensor, own(torch.float32, of=0))
    outputs = [torch.empty(6) for _ in range(size)]
    group.allgather(outputs, own(torch.float32)).wait()
    check(torch.stack(outputs), all_of(torch.float32))


for name, test in list(globals().items()):
    if name.startswith("test_"):
        test()
        dist.barrier()
dist.destroy_process_group()
print("all right")
