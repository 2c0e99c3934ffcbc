"""Process sets. Only the set of all ranks is there yet."""

from typing import List, Optional, Sequence, Union

from horovod.common import basics

_UNAVAILABLE = (
    "Process sets other than hvd.global_process_set are not available in this version of Horovod."
)


class ProcessSet:
    """A set of ranks that can run collectives of its own.

    Attributes:
      process_set_id: 0 for the set of all ranks; None while not registered, as is any other set for
        now.
      ranks: sorted list of global ranks; None in :data:`global_process_set` before init.
    """

    def __init__(self, ranks: Sequence[int]) -> None:
        if isinstance(ranks, (str, bytes)) or not hasattr(ranks, "__iter__"):
            raise NotImplementedError("ProcessSet: this Horovod is built without MPI.")
        ranks = list(ranks)
        if not all(isinstance(rank, int) for rank in ranks):
            raise ValueError("ProcessSet needs a list of ranks (int), got {!r}".format(ranks))
        self.process_set_id: Optional[int] = None
        self.mpi_comm = None
        self._ranks = sorted(ranks)

    @property
    def ranks(self) -> Optional[List[int]]:
        return self._ranks

    def size(self) -> Optional[int]:
        """How many ranks the set has; None before it is registered."""
        return None

    def rank(self) -> Optional[int]:
        """This process's number in the set; None before it is registered."""
        return None

    def included(self) -> Optional[bool]:
        """Whether this process is in the set; None before it is registered."""
        return None

    def __str__(self) -> str:
        return "ProcessSet(process_set_id={}, ranks={})".format(self.process_set_id, self.ranks)


class _GlobalProcessSet(ProcessSet):
    def __init__(self) -> None:
        super().__init__([])
        self.process_set_id = 0

    @property
    def ranks(self) -> Optional[List[int]]:
        return list(range(basics.size())) if basics.is_initialized() else None

    def size(self) -> int:
        return basics.size()

    def rank(self) -> int:
        return basics.rank()

    def included(self) -> bool:
        return basics.is_initialized()


global_process_set = _GlobalProcessSet()


def check(process_set: ProcessSet) -> None:
    """Raises TypeError unless `process_set` is one that collectives can run on."""
    if process_set is not global_process_set:
        raise TypeError("process_set={} is not registered. {}".format(process_set, _UNAVAILABLE))


def add_process_set(process_set: Union[ProcessSet, Sequence[int]]) -> ProcessSet:
    """Not available yet: raises NotImplementedError."""
    raise NotImplementedError(_UNAVAILABLE)


def remove_process_set(process_set: ProcessSet) -> bool:
    """Not available yet: raises NotImplementedError, except that the global set is never removed
    (False)."""
    if process_set is global_process_set:
        return False
    raise NotImplementedError(_UNAVAILABLE)
