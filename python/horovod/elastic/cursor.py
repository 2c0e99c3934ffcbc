"""The progress of a job in an epoch of its data, independent of the number of ranks."""

from typing import Any

from horovod.common import _warnings
from horovod.common.basics import rank, size
from horovod.elastic import outside_run
from horovod.elastic.runs import runs


class JobCursor:
    """Counts the items of an epoch that all ranks together have processed, from the start of the epoch's order.

    Only :meth:`reset` decides which items each rank gets. It is called by :meth:`set_epoch`, :meth:`load_state_dict` and, in
    a new world, the elastic loop. :meth:`record_batch` only counts.

    Attributes:
      epoch: the number of the epoch.
      processed_num: how many items of the epoch all ranks together have processed.
      num_replicas, rank: size and rank in the world over which the remaining items are distributed.
    """

    _kept_in_run = 0  # the newest run in which a state has saved it, or has set it

    def __init__(self) -> None:
        self.epoch = 0
        self.processed_num = 0
        self.num_replicas = 0
        self.rank = 0
        self._dealt_epoch = 0
        self._dealt_from = 0  # in that epoch's order
        self.reset()

    def set_epoch(self, epoch: int) -> None:
        """Starts an epoch, of which nothing is processed yet. Call it at the end of the previous epoch, before commit.

        Args:
          epoch: the number of the epoch that starts.
        """
        self.epoch = epoch
        self.processed_num = 0
        self.reset()

    def record_batch(self, batch_idx: int, batch_size: int) -> None:
        """Records that every rank has processed a batch.

        Args:
          batch_idx: the batch's number; not used.
          batch_size: the number of items on each rank, the same on all. The last batch of an epoch may be shorter.
        """
        self.processed_num += batch_size * self.num_replicas
        outside_run.warn(f"{type(self).__name__}.record_batch()")
        # The state of a run saves its values before the function is called.
        if runs.inside and self._kept_in_run != runs.number:
            self._kept_in_run = runs.number  # one warning
            self._warn_of_no_state()

    def _warn_of_no_state(self) -> None:
        if self.rank != 0:
            return
        _warnings.warn(
            f"{type(self).__name__} is in no state: after a change of the world, items would be processed twice or not at all. "
            f"Give it to the state of the run, as in {runs.state_kind}(..., sampler=sampler)."
        )

    def state_dict(self) -> dict[str, Any]:
        """Returns the progress: the epoch, and the number of its items that all ranks have processed."""
        self._kept_in_run = runs.number
        return {"epoch": self.epoch, "processed_num": self.processed_num}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continues from a saved progress, in the current world.

        Args:
          state_dict: what :meth:`state_dict` returned.
        """
        self._kept_in_run = runs.number
        self.epoch = state_dict["epoch"]
        self.processed_num = state_dict["processed_num"]
        self.reset()

    def reset(self) -> None:
        """Distributes the unprocessed items over the ranks of the current world. Existing iterators do not change."""
        self.num_replicas = size()
        self.rank = rank()
        self._dealt_epoch = self.epoch
        self._dealt_from = self.processed_num
