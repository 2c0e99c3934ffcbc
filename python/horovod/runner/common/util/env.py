"""The launcher's variables in this process's environment."""

import os

# Of Horovod's own launcher, Open MPI's and PMI's.
_VARIABLES = (
    ("HOROVOD_RANK", "HOROVOD_SIZE"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMI_RANK", "PMI_SIZE"),
)


def get_env_rank_and_size() -> tuple[int, int]:
    """Returns rank and size from the environment; (0, 1) if they are not set.

    Raises:
      RuntimeError: only one of the two is set.
    """
    for rank, size in _VARIABLES:
        found = [name for name in (rank, size) if os.environ.get(name)]
        if len(found) == 2:
            return int(os.environ[rank]), int(os.environ[size])
        if found:
            raise RuntimeError(f"the environment has one of {rank} and {size}: set both, or none")
    return 0, 1
