"""The state of an elastic training with Keras."""

import importlib
import os
from collections.abc import Iterator, Sequence
from typing import Any, Callable, Optional, Union

import numpy

from horovod._keras import tensors
from horovod._keras.distributed import open_group_of
from horovod._keras.packages import is_keras3, package_of
from horovod.common.class_names import class_of
from horovod.elastic import handlers, reading
from horovod.elastic.cursor import JobCursor
from horovod.elastic.tensor_state import TensorState
from horovod.elastic.trees import Trees
from horovod.numpy import _arrays

_TREES = Trees(_arrays)
_NOT_BUILT = "the model has no variables yet: call model.build(input_shape) before its state is made"


class VariablesHandler(handlers.StateDictHandler):
    """Handler of a model or its optimizer. Restore and sync assign to the variables in place.

    Args:
      value: the model, or the optimizer.
      variables: a function that returns its variables, the same number in the same order on all ranks.
      model: the model, whose fit() may be using the variables.
    """

    trees = _TREES

    def __init__(self, value: Any, variables: Callable[[Any], list[Any]], model: Any) -> None:
        self._variables_of = variables
        self._model = model
        super().__init__(value)

    def state_dict(self) -> list[numpy.ndarray]:
        tensors.take_from_training(self._model)
        values = tensors.values_of(self.value, self._variables_of(self.value))
        return [_read_only(value) for value in values]

    own_tensors = state_dict

    def replicated(self, tree: Sequence[numpy.ndarray]) -> Iterator[tuple[str, str, numpy.ndarray]]:
        variables = self._variables_of(self.value)
        if self._variables_of is tensors.variables_of_optimizer:
            return tensors.places_of("optimizer state", variables, tree)
        return tensors.places_of("parameters", variables, tree, lambda variable: getattr(variable, "trainable", False))

    def load(self, saved: Sequence[numpy.ndarray]) -> None:
        # A backend may keep the memory of an array, and a later save writes to it.
        self.take([array.copy() for array in saved])

    def take(self, state: Sequence[numpy.ndarray]) -> None:
        tensors.assign(self.value, self._variables_of(self.value), state)
        self.given()

    def given(self) -> None:
        tensors.drop_passes(self.value)

    def open_group(self) -> str:
        return open_group_of(self.value)


class ModelHandler(VariablesHandler):
    """Handler of the model. Anything but its weights, such as the states of random generators, belongs to each rank and is not
    restored.
    """

    def __init__(self, model: Any) -> None:
        super().__init__(model, tensors.variables_of_model, model)

    def take(self, state: Sequence[numpy.ndarray]) -> None:
        tensors.leave_training(self._model)
        super().take(state)


class SamplerHandler(handlers.SamplerStateHandler):
    """Handler of ElasticSampler and ElasticIterable."""

    trees = _TREES


def _read_only(array: numpy.ndarray) -> numpy.ndarray:
    """Returns a read-only view of the array, which may be the memory of a variable."""
    view: numpy.ndarray = array.view()
    view.flags.writeable = False
    return view


class KerasState(TensorState):
    """State of a Keras training: ``KerasState(model, batch=0, epoch=0)``. The model, the optimizer and all other arguments are
    attributes of the state.

    A save is a real copy in host memory. restore assigns exactly the values of the last save. sync gives all ranks rank 0's
    current state, all of the same moment, in few operations. For the place of commits, and for checkpoints, see
    :class:`horovod.torch.elastic.TorchState`.

    Args:
      model: a Keras model that is built, so that it has its variables.
      optimizer: a Keras optimizer, distributed or not; by default the one that the model is compiled with. Its variables are
        created now, so that all ranks have the same.
      checkpoint_dir: the folder for checkpoints, which is created if it is missing, or a URL for fsspec; None: no
        checkpoints.
      checkpoint_every: the minimum number of commits from one checkpoint to the next.
      kwargs: further values, by their names. Models, optimizers, metrics, variables, samplers and objects whose class has
        state_dict and load_state_dict are restored in place, also within lists, tuples and dicts; all others are copied deeply.

    Raises:
      OSError: `checkpoint_dir` can't be made or written to.
      TypeError: `model` is not a Keras model, or `optimizer` is not a Keras optimizer.
      ValueError: the model is not built, or `checkpoint_every` is not a positive number.
    """

    def __init__(
        self,
        model: Any,
        optimizer: Any = None,
        checkpoint_dir: Optional[str] = None,
        checkpoint_every: int = 1,
        **kwargs: Any,
    ) -> None:
        _check(model, optimizer)
        if not getattr(model, "built", True):
            raise ValueError(_NOT_BUILT)
        optimizer = optimizer if optimizer is not None else getattr(model, "optimizer", None)
        _make_variables(optimizer, model)

        def handler_of(value: Any) -> Optional[handlers.StateHandler]:
            if value is model:
                return ModelHandler(model)
            if value is optimizer and value is not None:
                return VariablesHandler(value, tensors.variables_of_optimizer, model)
            return SamplerHandler(value) if isinstance(value, JobCursor) else _handler_of(value, model)

        # Batches of the epoch that are done, of how many: see UpdateBatchStateCallback.
        kwargs["_fit_progress"] = (0, 0)
        kwargs.update(model=model, optimizer=optimizer)
        super().__init__(_TREES, handler_of, checkpoint_dir, checkpoint_every, **kwargs)


def _handler_of(value: Any, model: Any) -> Optional[handlers.StateHandler]:
    """Returns a handler of another object of Keras or TensorFlow that has variables; None for any other value.

    Raises ValueError if it has not made its variables yet.
    """
    kind = type(value)
    if kind.__module__.split(".")[0] == "tensorflow":
        tensorflow: Any = importlib.import_module("horovod.tensorflow.elastic")
        found: Optional[handlers.StateHandler] = tensorflow.handler_of_other(value)
        return found
    if package_of(value) is None:
        return None
    if not getattr(value, "built", True) and (hasattr(kind, "apply_gradients") or hasattr(kind, "weights")):
        raise ValueError(f"{kind.__name__} has no variables yet: build it before you give it to a state")
    # Lookup layers, such as TextVectorization, have the first two as well.
    if all(hasattr(kind, name) for name in ("update_state", "reset_state", "result")):
        return _handler_of_metric(value, model)
    if hasattr(kind, "apply_gradients"):
        return VariablesHandler(value, tensors.variables_of_optimizer, model)
    if hasattr(kind, "fit"):
        return ModelHandler(value)
    if hasattr(kind, "weights"):
        return VariablesHandler(value, tensors.variables_of_model, model)
    if hasattr(kind, "assign"):
        return VariablesHandler(value, _itself, model)
    return VariablesHandler(value, _seed_of, model) if kind.__name__ == "SeedGenerator" else None


def _handler_of_metric(metric: Any, model: Any) -> handlers.StateHandler:
    if not metric.variables:  # as F1Score, which learns the number of classes from its first values
        raise ValueError(f"{type(metric).__name__} has no variables yet: update it once before you give it to a state")
    return VariablesHandler(metric, _variables_of_metric, model)


def _variables_of_metric(metric: Any) -> list[Any]:
    return list(metric.variables)


def _itself(variable: Any) -> list[Any]:
    return [variable]


def _seed_of(generator: Any) -> list[Any]:
    return [generator.state]


def _check(model: Any, optimizer: Any) -> None:
    """Raises TypeError if `model` is not a Keras model, or `optimizer` is given and not a Keras optimizer."""
    # hasattr of the class, because `weights` of a Keras 2 model that is not built raises.
    if package_of(model) is None or not hasattr(type(model), "weights"):
        raise TypeError(f"KerasState needs a model of Keras, got {class_of(model)}")
    if optimizer is not None and (package_of(optimizer) is None or not hasattr(optimizer, "apply_gradients")):
        raise TypeError(f"KerasState needs an optimizer of Keras, got {class_of(optimizer)}")


def _make_variables(optimizer: Any, model: Any) -> None:
    """Creates the slots of an optimizer that has not stepped yet."""
    if optimizer is None:
        return
    variables = model.trainable_variables
    if hasattr(optimizer, "_create_all_weights"):
        optimizer._create_all_weights(variables)
    elif not (is_keras3(package_of(optimizer)) and optimizer.built):
        optimizer.build(variables)


def load_checkpoint(path: Union[str, "os.PathLike[str]"]) -> dict[str, Any]:
    """Returns what is in a checkpoint of a state, by the names of its values, without a job and without the state.

    Args:
      path: a .hvd file; or a folder or URL with checkpoints, of which the newest complete one is read.

    Returns:
      A dict: for models and optimizers the list of their variables as arrays; plain values.

    Raises:
      FileNotFoundError: there is no checkpoint.
      ValueError: the file is damaged, or no checkpoint.
    """
    return reading.load(_TREES, path)
