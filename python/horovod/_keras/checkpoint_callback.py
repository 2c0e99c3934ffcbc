"""The callback that saves the best model."""

from typing import Any

_NO_PATH = "BestModelCheckpoint has no filepath: set its attribute `filepath` before fit()."

# A mixin: the next base class is ModelCheckpoint of some Keras.
_Behind: Any = object


class BestModel(_Behind):  # type: ignore[misc]
    """Keras's ModelCheckpoint with ``save_best_only=True``. Set its attribute `filepath` before fit(). Use it on one rank, after
    MetricAverageCallback in the list.

    Args:
      monitor, verbose, save_weights_only, mode, save_freq: as for ModelCheckpoint.

    Raises:
      ValueError: in fit(), `filepath` is not set.
    """

    filepath: Any

    def __init__(
        self,
        monitor: str = "val_loss",
        verbose: int = 0,
        save_weights_only: bool = False,
        mode: str = "auto",
        save_freq: Any = "epoch",
    ) -> None:
        super().__init__(
            filepath="best.weights.h5" if save_weights_only else "best.keras",  # Keras chooses the format by the suffix
            monitor=monitor,
            verbose=verbose,
            save_best_only=True,
            save_weights_only=save_weights_only,
            mode=mode,
            save_freq=save_freq,
        )
        self.filepath = None

    def on_train_begin(self, logs: Any = None) -> None:
        """Checks that `filepath` is set. Keras calls it.

        Args:
          logs: not used.
        """
        if self.filepath is None:
            raise ValueError(_NO_PATH)
        super().on_train_begin(logs)


class BestModelOfKeras(BestModel):
    """Keras's ModelCheckpoint with ``save_best_only=True``. Set its attribute `filepath` before fit(). Use it on one rank, after
    MetricAverageCallback in the list.

    Args:
      monitor, verbose, mode, save_freq, save_weights_only: as for ModelCheckpoint.

    Raises:
      ValueError: in fit(), `filepath` is not set.
    """

    # Horovod's of this package has no save_weights_only, and those behind it are given by position.
    def __init__(
        self,
        monitor: str = "val_loss",
        verbose: int = 0,
        mode: str = "auto",
        save_freq: Any = "epoch",
        save_weights_only: bool = False,
    ) -> None:
        super().__init__(monitor, verbose, save_weights_only, mode, save_freq)
