"""A program that only starts, for start.py: worker_start.py hvd|torch DIRECTORY. Each rank writes a file with the times of its phases."""

import time

times = {"python": time.monotonic()}
import json  # noqa: E402
import sys  # noqa: E402

import torch  # noqa: E402, F401

times["torch"] = time.monotonic()
if sys.argv[1] == "hvd":
    import horovod.torch as library

    times["library"] = time.monotonic()
    library.init()
    rank, end = library.rank(), library.shutdown
else:
    import torch.distributed as library

    times["library"] = time.monotonic()
    library.init_process_group("gloo")
    rank = library.get_rank()

    def end():
        library.barrier()  # a rank that goes while another still connects makes that one fail
        library.destroy_process_group()


times["ready"] = time.monotonic()
with open(f"{sys.argv[2]}/{rank}", "w", encoding="ascii") as file:
    json.dump(times, file)
end()
