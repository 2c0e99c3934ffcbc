"""Operations on the backend hvd as torch's profiler sees them: profiled.py STORE RANK RANKS"""

import datetime
import sys

import torch
import torch.distributed as dist

import horovod.torch.distributed  # noqa: F401

store, rank, size = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
torch.set_num_threads(1)
dist.init_process_group("hvd", init_method=store, rank=rank, world_size=size, timeout=datetime.timedelta(seconds=60))
gather_into = getattr(dist, "all_gather_into_tensor", dist._all_gather_base)
reduce_scatter_into = getattr(dist, "reduce_scatter_tensor", dist._reduce_scatter_base)
other = (rank + 1) % size
one, whole = torch.ones(1), torch.ones(size)
parts = list(whole.split(1))


def messages() -> None:
    receive = dist.irecv(torch.empty(1), other)
    dist.send(one, other)
    receive.wait()


OPERATIONS = {
    "all_reduce": lambda: dist.all_reduce(torch.ones(1)),
    "reduce": lambda: dist.reduce(torch.ones(1), 0),
    "broadcast": lambda: dist.broadcast(torch.ones(1), 0),
    "barrier": lambda: dist.barrier(),
    "all_gather": lambda: dist.all_gather(parts, one),
    "all_gather_into_tensor": lambda: gather_into(whole, one),
    "reduce_scatter": lambda: dist.reduce_scatter(torch.empty(1), parts),
    "reduce_scatter_tensor": lambda: reduce_scatter_into(torch.empty(1), whole),
    "all_to_all": lambda: dist.all_to_all(parts, [part.clone() for part in parts]),
    "all_to_all_single": lambda: dist.all_to_all_single(torch.empty(size), whole),
    "gather": lambda: dist.gather(one, parts if rank == 0 else None),
    "scatter": lambda: dist.scatter(torch.empty(1), parts if rank == 0 else None),
    "send": messages,
}
with torch.profiler.profile() as profile:
    for operation in OPERATIONS.values():
        operation()
found = [event.name[len("hvd:") :] for event in profile.events() if event.name.startswith("hvd:")]
assert sorted(found) == sorted([*OPERATIONS, "recv"]), found

# One that is waited for later lasts until it is done, not until the wait.
with torch.profiler.profile() as profile:
    if rank == 1:
        dist.recv(torch.empty(1), 0)  # so that rank 0's is not done at once
    with torch.profiler.record_function("before"):
        work = dist.all_reduce(torch.ones(1), async_op=True)
    if rank == 0:
        dist.send(one, 1)
    work.get_future().then(lambda _: None).wait()
    with torch.profiler.record_function("between"):
        pass
    work.wait()
times = {event.name: event.time_range for event in profile.events()}
assert times["before"].start <= times["hvd:all_reduce"].start <= times["before"].end, times
assert times["hvd:all_reduce"].end <= times["between"].start, times
if rank == 0:
    assert times["before"].end < times["hvd:all_reduce"].end, times

with torch.profiler.profile():
    left = dist.all_reduce(torch.ones(1), async_op=True) if rank == 0 else None
if rank == 0:
    dist.send(one, 1)
else:
    dist.recv(one, 0)
    dist.all_reduce(torch.ones(1))
if left is not None:
    left.wait()  # after the profiler's end
print("all right", flush=True)
