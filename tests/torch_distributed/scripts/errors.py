"""One mistake of rank 1 on the backend hvd: errors.py STORE RANK RANKS CASE. Each rank prints its error."""

import datetime
import os
import sys

import torch
import torch.distributed as dist

import horovod.torch.distributed  # noqa: F401

store, rank, size, case = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
torch.set_num_threads(1)
seconds = 2 if case in ("absent", "absent_message", "monitored") else 60
dist.init_process_group(
    "hvd", init_method=store, rank=rank, world_size=size, timeout=datetime.timedelta(seconds=seconds)
)
mistaken = rank == 1
over = dist.FileStore(store[len("file://") :] + "-over", size)  # until rank 0 has its error


def operation() -> None:
    if case == "operation":
        dist.barrier() if mistaken else dist.all_reduce(torch.ones(3))
    elif case == "size":
        dist.all_reduce(torch.ones(4 if mistaken else 3))
    elif case == "type":
        dist.all_reduce(torch.ones(3, dtype=torch.float64 if mistaken else torch.float32))
    elif case == "reduction":
        dist.all_reduce(torch.ones(3), op=dist.ReduceOp.MAX if mistaken else dist.ReduceOp.SUM)
    elif case == "root":
        dist.broadcast(torch.ones(3), 1 if mistaken else 0)
    elif case == "gathered":
        dist.all_gather([torch.empty(3) for _ in range(size)], torch.ones(3 - mistaken))
    elif case == "absent":
        if mistaken:
            over.wait(["over"])
        dist.all_reduce(torch.ones(3))
    elif case == "monitored":
        if mistaken:
            over.wait(["over"])
        dist.monitored_barrier()
    elif case == "absent_message":
        dist.recv(torch.empty(1), 1) if rank == 0 else over.wait(["over"])
    elif case == "left_before_message":
        if mistaken:
            sys.exit(0)  # without a word, and before any message
        dist.recv(torch.empty(1), 1)
    elif case == "dies":
        if mistaken:
            os.kill(os.getpid(), 9)
        dist.all_reduce(torch.ones(3))
    elif case == "dies_before_message":
        if mistaken:
            os.kill(os.getpid(), 9)
        dist.recv(torch.empty(3), 1)
    elif case == "leaves":
        if mistaken:
            dist.destroy_process_group()
            raise RuntimeError("left")
        dist.all_reduce(torch.ones(3))
    elif case == "message_size":
        dist.recv(torch.empty(3), 1) if rank == 0 else dist.send(torch.ones(4), 0)
    elif case == "message_type":
        dist.recv(torch.empty(2), 1) if rank == 0 else dist.send(torch.ones(1, dtype=torch.float64), 0)
    else:
        raise AssertionError(case)


try:
    operation()
    print(f"rank {rank}: no error", flush=True)
except (RuntimeError, ValueError) as error:
    print(f"rank {rank}: {error}", flush=True)
over.set("over", "")
if case in ("size", "type", "reduction", "root"):  # the group stays usable
    tensor = torch.ones(2)
    dist.all_reduce(tensor)
    assert tensor.tolist() == [size, size]
    print("goes on", flush=True)
os._exit(0)
