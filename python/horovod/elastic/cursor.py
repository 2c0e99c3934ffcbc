"""The progress of a job in an epoch of its data, independent of the number of ranks."""

from horovod.common.basics import rank, size


class JobCursor:
    """Counts what all ranks together have processed of an epoch, from the front of the epoch's
    order.

    Only :meth:`reset` decides which items each rank gets; :meth:`set_epoch`,
    :meth:`load_state_dict` and, in a new world, the elastic loop call it. :meth:`record_batch` only
    counts.

    Attributes:
      epoch: its number.
      processed_num: how many items of the epoch all ranks together have processed.
      num_replicas, rank: the world that the rest is dealt out to.
    """

    def __init__(self) -> None:
        self.epoch = 0
        self.processed_num = 0
        self.num_replicas = 0
        self.rank = 0
        self._dealt_epoch = 0
        self._dealt_from = 0  # in that epoch's order
        self.reset()

    def set_epoch(self, epoch: int) -> None:
        """Starts epoch number `epoch`: nothing is processed yet. Call it at the end of the one
        before, before commit."""
        self.epoch = epoch
        self.processed_num = 0
        self.reset()

    def record_batch(self, batch_idx: int, batch_size: int) -> None:
        """Notes that every rank has processed a batch of `batch_size` items, the same number on all
        ranks. The last batch of an epoch may be shorter than `batch_size`."""
        self.processed_num += batch_size * self.num_replicas

    def state_dict(self) -> dict[str, int]:
        """The progress: epoch, and items processed in it by all ranks."""
        return {"epoch": self.epoch, "processed_num": self.processed_num}

    def load_state_dict(self, state_dict: dict[str, int]) -> None:
        """Goes to that progress, in the present world."""
        self.epoch = state_dict["epoch"]
        self.processed_num = state_dict["processed_num"]
        self.reset()

    def reset(self) -> None:
        """Distributes the unprocessed items over the ranks of the present world. Existing iterators
        do not change."""
        self.num_replicas = size()
        self.rank = rank()
        self._dealt_epoch = self.epoch
        self._dealt_from = self.processed_num
