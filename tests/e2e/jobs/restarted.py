"""A script for torchrun that knows nothing of Horovod: counts steps in a file, from which it goes on when it is started again.

restarted.py STEPS FOLDER [WHAT]
WHAT: nothing; `wait` at step 3 until FOLDER/go is there; `fail` from step 3 on; `hvd`: hvd.init(), as under torchrun.
"""

import os
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist

steps, folder, what = int(sys.argv[1]), Path(sys.argv[2]), (sys.argv[3:] or [""])[0]
dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()
assert (str(rank), str(size)) == (os.environ["RANK"], os.environ["WORLD_SIZE"])
checkpoint = folder / "checkpoint.pt"
step = torch.load(checkpoint)["step"] if checkpoint.exists() else 0
restarts = os.environ["TORCHELASTIC_RESTART_COUNT"]
port = os.environ["MASTER_PORT"]
print(f"rank {rank} of {size} restart {restarts} step {step} port {port} pid {os.getpid()}\n", end="", flush=True)
told_waits = False
while step < steps:
    told = torch.tensor([1.0, float(rank == 0 and (folder / "go").exists())])
    dist.all_reduce(told)
    assert told[0] == size
    if what == "fail" and step >= 3 and rank == size - 1:
        sys.exit(7)
    if what == "wait" and step == 3 and not told[1]:
        if rank == 0 and not told_waits:
            print("rank 0 waits at step 3", flush=True)
        told_waits = True
        time.sleep(0.02)  # a step's work
        continue
    step += 1
    if rank == 0:
        torch.save({"step": step}, folder / "new")
        os.replace(folder / "new", checkpoint)
    dist.barrier()
if what == "hvd":
    import horovod.torch as hvd

    hvd.init()
    assert (hvd.rank(), hvd.size()) == (rank, size)
    assert hvd.allreduce(torch.ones(1), op=hvd.Sum).item() == size
    hvd.shutdown()
print(f"rank {rank} of {size} done at step {step}\n", end="", flush=True)
dist.destroy_process_group()
os._exit(0)  # torch 2.13 may abort at the end of an interpreter that used gloo
