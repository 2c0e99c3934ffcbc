"""The callbacks that change the learning rate."""

from typing import Any, Callable, Optional, Union

import numpy

import horovod.numpy as hvd
from horovod._keras import tensors
from horovod.common.basics import rank, size

_STEPS = "{}: how many steps an epoch has is not known: pass steps_per_epoch"
_DIFFERENT = (
    "the ranks have different learning rates, so their weights would drift apart: rank 0 {:g}, rank {} {:g}. A callback such as "
    "ReduceLROnPlateau has decided by each rank's own metrics: put hvd.callbacks.MetricAverageCallback() before it"
)
_SAME = 1e-5  # machines of other kinds may compute a schedule with another last bit
_SCHEDULE = "{} sets the learning rate, but the optimizer was made with a schedule: make it with a number."

# A mixin: the next base class is Callback of some Keras.
_Behind: Any = object


class LearningRateSchedule(_Behind):  # type: ignore[misc]
    """Sets the learning rate to `initial_lr * multiplier` from one epoch to another.

    Args:
      initial_lr: the learning rate at the start.
      multiplier: a number m, which stands for m ** (e - start_epoch) in epoch e; or a function of the epoch.
      start_epoch: the first epoch for which the rate is set.
      end_epoch: the epoch after the last one for which the rate is set; None: no end.
      staircase: whether the rate changes only at the beginning of epochs. If not, it changes at each batch, and the epoch is
        the number `epoch + batch / steps_per_epoch`.
      momentum_correction: whether the momentum of earlier steps is scaled with the rate, for optimizers with momentum.
      steps_per_epoch: the number of batches of an epoch, by default the one that fit() knows.

    Raises:
      ValueError: `initial_lr` is missing, or `multiplier` is neither a number nor a function; in fit(), the learning rate is
        a schedule, or the number of batches is needed and unknown.
    """

    model: Any
    params: dict[str, Any]

    def __init__(
        self,
        initial_lr: float,
        multiplier: Union[float, Callable[[float], float]],
        start_epoch: int = 0,
        end_epoch: Optional[int] = None,
        staircase: bool = True,
        momentum_correction: bool = True,
        steps_per_epoch: Optional[int] = None,
    ) -> None:
        super().__init__()
        if initial_lr is None:
            raise ValueError("Parameter `initial_lr` is required")
        if not callable(multiplier) and not hasattr(multiplier, "__float__"):
            raise ValueError(f"multiplier={multiplier!r} is neither a number nor a function of the epoch")
        self.initial_lr = initial_lr
        self.start_epoch = start_epoch
        self.end_epoch = end_epoch
        self.staircase = staircase
        self.momentum_correction = momentum_correction
        self.steps_per_epoch = steps_per_epoch
        self.current_epoch = 0
        self.multiplier = multiplier if callable(multiplier) else self._power_of(multiplier)
        self._momentum_before: Any = None  # of a legacy optimizer, during a batch

    def _power_of(self, base: float) -> Callable[[float], float]:
        return lambda epoch: base ** (epoch - self.start_epoch)

    def on_train_begin(self, logs: Any = None) -> None:
        if not self.staircase and not self.steps_per_epoch:
            self.steps_per_epoch = self._steps_of_fit()

    def _steps_of_fit(self) -> int:
        params = self.params
        if params.get("steps"):
            return int(params["steps"])
        if params.get("samples") and params.get("batch_size"):
            return int(params["samples"]) // int(params["batch_size"])
        raise ValueError(_STEPS.format(type(self).__name__))

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        self.current_epoch = epoch

    def on_batch_begin(self, batch: int, logs: Any = None) -> None:
        epoch = self.current_epoch
        if epoch < self.start_epoch or (self.end_epoch is not None and epoch >= self.end_epoch):
            return
        if not self.staircase:
            self._adjust(epoch + batch / (self.steps_per_epoch or 1))
        elif batch == 0:
            self._adjust(epoch)

    def _adjust(self, epoch: float) -> None:
        tensors.take_from_training(self.model)
        rates = LearningRate(self.model.optimizer, type(self).__name__)
        before, after = rates.get(), self.initial_lr * self.multiplier(epoch)
        rates.set(after)
        if self.momentum_correction and before != after and before != 0:
            self._momentum_before = rates.scale_momentum(after / before)

    def on_batch_end(self, batch: int, logs: Any = None) -> None:
        if self._momentum_before is not None:
            self.model.optimizer.momentum = self._momentum_before
            self._momentum_before = None

    def on_epoch_end(self, epoch: int, logs: Optional[dict[str, Any]] = None) -> None:
        if logs is not None:
            logs["lr"] = LearningRate(self.model.optimizer, type(self).__name__).get()


class LearningRateWarmup(LearningRateSchedule):
    """Raises the learning rate from `initial_lr / hvd.size()` to `initial_lr`, batch by batch, as in Goyal et al.,
    https://arxiv.org/abs/1706.02677:
    ``initial_lr / size * ((size - 1) / warmup_epochs * (epoch + (batch + 1) / steps_per_epoch) + 1)``.

    Args:
      initial_lr: the learning rate after the warmup.
      warmup_epochs: how many epochs the warmup takes.
      momentum_correction, steps_per_epoch: as for :class:`LearningRateSchedule`.
      verbose: if 1, rank 0 prints when the warmup is over.
    """

    def __init__(
        self,
        initial_lr: float,
        warmup_epochs: int = 5,
        momentum_correction: bool = True,
        steps_per_epoch: Optional[int] = None,
        verbose: int = 0,
    ) -> None:
        def multiplier(epoch: float) -> float:
            epoch += 1.0 / (self.steps_per_epoch or 1)  # so that epochs end with round numbers
            return 1.0 / size() * (epoch * (size() - 1) / warmup_epochs + 1)

        super().__init__(
            initial_lr,
            multiplier,
            start_epoch=0,
            end_epoch=warmup_epochs,
            staircase=False,
            momentum_correction=momentum_correction,
            steps_per_epoch=steps_per_epoch,
        )
        self.verbose = verbose

    def on_epoch_end(self, epoch: int, logs: Optional[dict[str, Any]] = None) -> None:
        super().on_epoch_end(epoch, logs)
        if self.end_epoch is not None and epoch == self.end_epoch - 1 and self.verbose > 0 and rank() == 0:
            rate = LearningRate(self.model.optimizer, type(self).__name__).get()
            print(f"\nEpoch {epoch + 1}: finished gradual learning rate warmup to {rate:g}.")


def check_alike(optimizer: Any) -> None:
    """Raises ValueError, on all ranks, if their optimizers have different learning rates. All ranks must call it."""
    rate = LearningRate(optimizer, "").get()
    rates = hvd.allgather(numpy.array([rate]), name="horovod.keras.learning_rates")
    if not numpy.allclose(rates, rates[0], rtol=_SAME, atol=0.0, equal_nan=True):
        other = int(numpy.argmax(~numpy.isclose(rates, rates[0], rtol=_SAME, atol=0.0, equal_nan=True)))
        raise ValueError(_DIFFERENT.format(rates[0], other, rates[other]))


class LearningRate:
    """The learning rate of an optimizer, of any Keras; a LossScaleOptimizer has that of the one in it.

    Args:
      optimizer: of the model.
      user: who sets the rate, for errors.
    """

    def __init__(self, optimizer: Any, user: str) -> None:
        self._optimizer = getattr(optimizer, "inner_optimizer", optimizer)
        self._user = user

    def get(self) -> float:
        return float(tensors.values_of(self._optimizer, [self._variable()])[0])

    def set(self, value: float) -> None:
        self._optimizer.learning_rate = value

    def variable(self) -> Any:
        """Returns the variable of the learning rate; None if there is a schedule instead."""
        optimizer = self._optimizer
        held = getattr(optimizer, "_learning_rate", None)
        rate = held if held is not None else optimizer.learning_rate
        return None if callable(rate) or not hasattr(rate, "assign") else rate

    def _variable(self) -> Any:
        rate = self.variable()
        if rate is None:
            raise ValueError(_SCHEDULE.format(self._user))
        return rate

    def scale_momentum(self, factor: float) -> Any:
        """Multiplies by `factor` what is left of earlier steps, in which their rate is contained. For a
        legacy optimizer, returns the momentum that is to be set again after the next step."""
        optimizer = self._optimizer
        if not hasattr(optimizer, "momentum"):
            return None
        if hasattr(optimizer.momentum, "assign"):
            before = float(tensors.values_of(optimizer, [optimizer.momentum])[0])
            optimizer.momentum = before * factor
            return before
        slots = getattr(optimizer, "momentums", None) or getattr(optimizer, "_momentums", None) or ()
        for slot in slots:
            if slot is not None:
                slot.assign(slot * factor)
        return None
