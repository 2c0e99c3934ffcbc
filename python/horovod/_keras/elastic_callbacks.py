"""The callbacks that update the state of an elastic training during fit().

Their order in the list of callbacks does not matter: whichever is called first updates the state, and a commit comes
after that.
"""

import weakref
from typing import Any, Optional

from horovod._keras.skipping import skip_batches
from horovod.common.class_names import class_of

# A mixin: the next base class is Callback of some Keras.
_Behind: Any = object


class _Progress:
    """The progress of fit(), for the state of one training.

    Attributes:
      counts_batches, counts_epochs: whether the state's `batch` and `epoch` are updated.
    """

    def __init__(self, state: Any) -> None:
        self._state = weakref.ref(state)
        self.counts_batches = self.counts_epochs = False
        self._begin(None)

    def _begin(self, steps: Optional[int]) -> None:
        self._steps = steps
        self._first_epoch: Optional[int] = None
        self._epoch_before = getattr(self._state(), "epoch", 0)
        self._skipped = 0

    def train_begin(self, params: dict[str, Any]) -> None:
        self._begin(params.get("steps"))

    def epoch_begin(self, epoch: int, model: Any) -> None:
        if self._first_epoch is None:
            self._first_epoch = epoch
            self._skipped = self._done_before() if self.counts_batches else 0
            skip_batches(model, self._skipped)

    def _done_before(self) -> int:
        """How many batches of this epoch were done before fit() began, of as many as it has now."""
        done, steps = getattr(self._state(), "_fit_progress", (0, 0))
        return int(done * self._steps // steps) if steps and self._steps else int(done)

    def is_skipped(self, batch: int) -> bool:
        return batch < self._skipped

    def is_last(self, batch: int) -> bool:
        return batch + 1 == self._steps

    def batch_end(self, batch: int) -> None:
        if self.counts_batches and not self.is_skipped(batch):
            self._set_batch(batch + 1)

    def _set_batch(self, done: int) -> None:
        state: Any = self._state()
        state.batch = done
        if hasattr(state, "_fit_progress"):
            state._fit_progress = (done, self._steps or 0)

    def epoch_end(self, epoch: int) -> None:
        self._skipped = 0
        if self.counts_batches:
            self._set_batch(0)
        if self.counts_epochs:
            state: Any = self._state()
            state.epoch = self._epoch_before + epoch - (self._first_epoch or 0) + 1


_progress: "weakref.WeakKeyDictionary[Any, _Progress]" = weakref.WeakKeyDictionary()


def _needs(callback: Any, state: Any, name: str) -> None:
    """Raises AttributeError, as Horovod does, if the state has no such attribute."""
    if not hasattr(state, name):
        raise AttributeError(
            f"{type(callback).__name__} needs a state with `{name}`, which would be in no commit else: make it with "
            f"KerasState(model, {name}=0)"
        )


class StateCallback(_Behind):  # type: ignore[misc]
    """The common base of the elastic callbacks.

    Args:
      state: a State of hvd.elastic.
    """

    model: Any
    params: dict[str, Any]

    def __init__(self, state: Any) -> None:
        super().__init__()
        self.state = state
        self._progress = _progress.setdefault(state, _Progress(state))

    def on_train_begin(self, logs: Any = None) -> None:
        self._progress.train_begin(self.params)

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        self._progress.epoch_begin(epoch, self.model)

    def on_batch_end(self, batch: int, logs: Any = None) -> None:
        self._progress.batch_end(batch)

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        self._progress.epoch_end(epoch)


class CommitState(StateCallback):
    """Commits the state after every `batches_per_commit` batches, and at the end of each epoch.

    Args:
      state: the state.
      batches_per_commit: the number of batches from one commit to the next.

    Raises:
      TypeError: `state` is not a state.
    """

    def __init__(self, state: Any, batches_per_commit: int = 1) -> None:
        if not hasattr(state, "commit"):
            raise TypeError(f"{type(self).__name__} needs a state, such as KerasState(model), got {class_of(state)}")
        super().__init__(state)
        self.batches_per_commit = batches_per_commit
        self.batches_remaining = batches_per_commit

    def on_train_begin(self, logs: Any = None) -> None:
        """Restarts the count of batches. Keras calls it.

        Args:
          logs: not used.
        """
        super().on_train_begin(logs)
        self.batches_remaining = self.batches_per_commit  # the same on all ranks, newcomers or not

    def on_batch_end(self, batch: int, logs: Any = None) -> None:
        """Commits if enough batches are done. Keras calls it.

        Args:
          batch: the number of the batch.
          logs: not used.
        """
        super().on_batch_end(batch, logs)
        if self._progress.is_skipped(batch):
            return
        self.batches_remaining -= 1
        if self.batches_remaining <= 0:
            self.batches_remaining = self.batches_per_commit
            if not self._progress.is_last(batch):  # the end of the epoch is committed
                self.commit()

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Commits. Keras calls it.

        Args:
          epoch: the number of the epoch.
          logs: not used.
        """
        super().on_epoch_end(epoch, logs)
        self.commit()

    def commit(self) -> None:
        """Commits the state."""
        self.state.commit()


class UpdateBatchState(StateCallback):
    """Sets `state.batch` to the number of batches of the epoch that are done, and to 0 at the epoch's end.

    When fit() is called again after a change of the world, its first epoch skips the batches that were done; if the number
    of steps has changed, the same fraction of them. This needs a KerasState, and a fit() with the data and `steps_per_epoch`
    of a whole epoch.

    Args:
      state: a state with an attribute `batch`.

    Raises:
      AttributeError: the state has no such attribute.
    """

    def __init__(self, state: Any) -> None:
        _needs(self, state, "batch")
        super().__init__(state)

    def on_train_begin(self, logs: Any = None) -> None:
        """Starts to count batches. Keras calls it.

        Args:
          logs: not used.
        """
        self._progress.counts_batches = True
        super().on_train_begin(logs)


class UpdateEpochState(StateCallback):
    """Sets `state.epoch` to the number of epochs that are done, from whatever number fit() counts.

    Args:
      state: a state with an attribute `epoch`.

    Raises:
      AttributeError: the state has no such attribute.
    """

    def __init__(self, state: Any) -> None:
        _needs(self, state, "epoch")
        super().__init__(state)

    def on_train_begin(self, logs: Any = None) -> None:
        """Starts to count epochs. Keras calls it.

        Args:
          logs: not used.
        """
        self._progress.counts_epochs = True
        super().on_train_begin(logs)
