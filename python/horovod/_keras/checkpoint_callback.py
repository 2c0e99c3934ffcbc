"""The callback that keeps the best model."""

from typing import Any

_NO_PATH = "BestModelCheckpoint has no filepath: set its attribute `filepath` before fit()."

# A mixin: the next base class is ModelCheckpoint of some Keras.
_Behind: Any = object


class BestModel(_Behind):  # type: ignore[misc]
    """Keras's ModelCheckpoint with ``save_best_only=True``, whose attribute `filepath` is to be set before
    fit(). Put it behind MetricAverageCallback, on one rank.

    Args:
      monitor, verbose, save_weights_only, mode, save_freq: as in ModelCheckpoint.

    Raises ValueError in fit() if there is no `filepath`.
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
            filepath="best.weights.h5" if save_weights_only else "best.keras",  # Keras looks at the end
            monitor=monitor,
            verbose=verbose,
            save_best_only=True,
            save_weights_only=save_weights_only,
            mode=mode,
            save_freq=save_freq,
        )
        self.filepath = None

    def on_train_begin(self, logs: Any = None) -> None:
        if self.filepath is None:
            raise ValueError(_NO_PATH)
        super().on_train_begin(logs)
