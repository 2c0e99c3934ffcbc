"""The collectives of hvd or torch.distributed, as tools/bench/collectives.py's referee asks for them. Started by it:

worker_collectives.py hvd SOCKET NAME                          under horovodrun
worker_collectives.py gloo SOCKET NAME STORE RANK SIZE         torch.distributed over Gloo; STORE: a file for this run only
worker_collectives.py hvd-group SOCKET NAME STORE RANK SIZE    torch.distributed over the backend hvd
"""

import sys

import torch

from bench_client import serve, time_calls

BACKENDS = {"gloo": "gloo", "hvd-group": "hvd"}
TYPES = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}


class Hvd:
    """Names are given, as every training does that calls often; the engine's negotiation is part of what is timed."""

    def __init__(self):
        import horovod.torch as hvd

        hvd.init()
        self.rank, self.size, self.barrier, self.end = hvd.rank(), hvd.size(), hvd.barrier, hvd.shutdown
        self.operations = {
            "allreduce": lambda large, _: hvd.allreduce_(large, op=hvd.Sum, name="bench"),
            "allgather": lambda _, small: hvd.allgather(small, name="bench"),
            "broadcast": lambda large, _: hvd.broadcast_(large, 0, name="bench"),
            "alltoall": lambda large, _: hvd.alltoall(large, name="bench"),
            "reducescatter": lambda large, _: hvd.reducescatter(large, op=hvd.Sum, name="bench"),
        }


class Torch:
    """Outputs are allocated once. Gloo has neither all_to_all_single nor reduce_scatter in torch 1.13."""

    def __init__(self, backend, store, rank, size):
        import torch.distributed as dist

        if backend == "hvd":
            import horovod.torch.distributed  # noqa: F401
        self.rank, self.size = int(rank), int(size)
        dist.init_process_group(backend, init_method=f"file://{store}", rank=self.rank, world_size=self.size)
        self.barrier, self.end = dist.barrier, dist.destroy_process_group
        self._out = None
        self.operations = {
            "allreduce": lambda large, _: dist.all_reduce(large),
            "allgather": lambda large, small: dist.all_gather(list(self._like(large).chunk(self.size)), small),
            "broadcast": lambda large, _: dist.broadcast(large, 0),
            "alltoall": lambda large, _: dist.all_to_all_single(self._like(large), large),
            "reducescatter": lambda large, small: dist.reduce_scatter_tensor(self._like(small), large),
            "gather-into": lambda large, small: dist.all_gather_into_tensor(self._like(large), small),
            "there-and-back": lambda large, _: self._there_and_back(dist, large),
        }

    def _there_and_back(self, dist, tensor):
        """A message from rank 0 to rank 1, and one back."""
        if self.rank == 0:
            dist.send(tensor, 1)
            dist.recv(tensor, 1)
        elif self.rank == 1:
            dist.recv(tensor, 0)
            dist.send(tensor, 0)

    def _like(self, tensor):
        if self._out is None or self._out.shape != tensor.shape or self._out.dtype != tensor.dtype:
            self._out = torch.zeros_like(tensor)
        return self._out


def main():
    torch.set_num_threads(1)
    library = Hvd() if sys.argv[1] == "hvd" else Torch(BACKENDS[sys.argv[1]], *sys.argv[4:])
    tensors = {}

    def handle(operation, element_type, size, calls, block):
        key = element_type, size
        if key not in tensors:
            tensors.clear()
            large = torch.zeros(
                size // torch.zeros(1, dtype=TYPES[element_type]).element_size(), dtype=TYPES[element_type]
            )
            tensors[key] = large, torch.zeros_like(large[: large.numel() // library.size])
        large, small = tensors[key]
        if operation not in library.operations:
            raise NotImplementedError(operation)
        call = library.operations[operation]
        library.barrier()
        return time_calls(lambda: call(large, small), calls, block)

    serve(sys.argv[2], sys.argv[3], library.rank, handle)
    library.end()


main()
