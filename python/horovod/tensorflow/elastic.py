"""Elastic training with TensorFlow: ``hvd.elastic``, which continues when workers fail, leave or join."""

import collections
import os
from collections.abc import Iterator, Sequence
from typing import Any, Callable, Optional, Union

import numpy

from horovod._keras.distributed import open_group_of
from horovod._keras.packages import package_of
from horovod._keras.tensors import drop_passes, places_of, variables_of_optimizer
from horovod.common.class_names import class_of
from horovod.elastic import handlers, reading
from horovod.elastic.loop import run
from horovod.elastic.parts import refuse_copies
from horovod.elastic.state import ObjectState
from horovod.elastic.tensor_state import TensorState
from horovod.elastic.trees import Trees
from horovod.numpy import _arrays
from horovod.tensorflow._library import tf
from horovod.tensorflow.gradient_aggregation import PASS_COUNTERS
from horovod.tensorflow.util import checked_variables, variable_of

__all__ = ["ObjectState", "TensorFlowKerasState", "TensorFlowState", "load_checkpoint", "run"]

_TREES = Trees(_arrays)

refuse_copies(lambda value: isinstance(value, (tf.Variable, tf.Module, tf.random.Generator)) or _is_of_keras(value))


def _is_of_keras(value: Any) -> bool:
    return package_of(value) is not None and any(
        hasattr(type(value), name) for name in ("apply_gradients", "weights", "assign")
    )


class VariablesHandler(handlers.StateDictHandler):
    """Handler of an object with tf.Variables. Restore and sync assign to the variables in place.

    Args:
      value: the object.
      variables: a function that returns its variables, the same number in the same order on all ranks.
      session: the session that holds their values; None in eager execution.
    """

    trees = _TREES

    def __init__(self, value: Any, variables: Callable[[Any], Sequence[Any]], session: Any = None) -> None:
        self._variables_of = variables
        self._session = session
        super().__init__(value)

    def state_dict(self) -> list[numpy.ndarray]:
        variables = [variable_of(variable) for variable in self._variables_of(self.value)]
        values = variables if self._session is None else self._session.run(variables)
        return [_view(value) for value in values]

    own_tensors = state_dict

    def replicated(self, tree: Sequence[numpy.ndarray]) -> Iterator[tuple[str, str, numpy.ndarray]]:
        variables = self._variables_of(self.value)
        return places_of("parameters", variables, tree, lambda variable: getattr(variable, "trainable", False))

    def load(self, saved: Sequence[numpy.ndarray]) -> None:
        # TensorFlow may keep the memory of an array, and overwrite it later.
        self.take([array.copy() for array in saved])

    def take(self, state: Sequence[numpy.ndarray]) -> None:
        variables = [variable_of(variable) for variable in self._variables_of(self.value)]
        if len(variables) != len(state):
            kind = type(self.value).__name__
            raise ValueError(f"{kind} has {len(variables)} variables, its saved state {len(state)}")
        if self._session is None:
            for variable, array in zip(variables, state):
                variable.assign(array)
        else:
            self._assign_in_session([variable.initializer for variable in variables], state)
        self.given()

    def _assign_in_session(self, initializers: Sequence[Any], state: Sequence[numpy.ndarray]) -> None:
        """Runs the initializers with these values in the place of the initial ones. Variables that were made from the same initial
        tensor need a run each.
        """
        runs: list[tuple[list[Any], dict[Any, numpy.ndarray]]] = []
        count: collections.Counter[Any] = collections.Counter()
        for initializer, array in zip(initializers, state):
            initial = initializer.inputs[1]
            number = count[initial.ref()]
            count[initial.ref()] += 1
            if number == len(runs):
                runs.append(([], {}))
            runs[number][0].append(initializer)
            runs[number][1][initial] = array
        for assignments, values in runs:
            self._session.run(assignments, values)

    def given(self) -> None:
        # Sums of gradients are dropped, with tf.compat.v1's optimizers: ranks need not be at the same pass.
        if self._session is not None:
            counters = self._session.graph.get_collection(PASS_COUNTERS)
            self._session.run([counter.initializer for counter in counters])


class OptimizerHandler(VariablesHandler):
    """Handler of a Keras optimizer."""

    def replicated(self, tree: Sequence[numpy.ndarray]) -> Iterator[tuple[str, str, numpy.ndarray]]:
        return places_of("optimizer state", self._variables_of(self.value), tree)

    def given(self) -> None:
        super().given()
        if self._session is None:
            drop_passes(self.value)

    def open_group(self) -> str:
        return open_group_of(self.value) if self._session is None else ""


def _view(value: Any) -> numpy.ndarray:
    """Returns a variable's values, without a copy if they are in host memory. They must not be written to, because other
    tensors may share the memory.
    """
    view: numpy.ndarray = numpy.asarray(value.read_value() if isinstance(value, tf.Variable) else value).view()
    view.flags.writeable = False
    return view


class TensorFlowState(TensorState):
    """State of a training with tf.Variables: ``TensorFlowState([weights, bias], epoch=0, batch=0)``. The variables and all other
    arguments are attributes of the state.

    A save is a real copy in host memory. restore assigns exactly the values of the last save. sync gives all ranks rank 0's
    current state, all of the same moment, in few operations. For the place of commits, and for checkpoints, see
    :class:`horovod.torch.elastic.TorchState`.

    Args:
      variables: the tf.Variables, by default the global variables of the graph. Their number, shapes and dtypes are the same
        on all ranks.
      session: the session that holds their values, in graphs of tf.compat.v1; by default the default session.
      checkpoint_dir: the folder for checkpoints, which is created if it is missing, or a URL for fsspec; None: no
        checkpoints.
      checkpoint_every: the minimum number of commits from one checkpoint to the next.
      kwargs: further values, by their names. Variables, modules, samplers and objects whose class has state_dict and
        load_state_dict are restored in place, also within lists, tuples and dicts; all others are copied deeply.

    Raises:
      OSError: `checkpoint_dir` can't be made or written to.
      TypeError: it is not a path, or `variables` is not a list of variables.
      ValueError: `checkpoint_every` is not a positive number.

    Example:
      >>> import tensorflow as tf
      >>> import horovod.tensorflow as hvd
      >>> weights = tf.Variable([1.0])
      >>> state = hvd.elastic.TensorFlowState([weights], epoch=0)
      >>> state.commit()
      >>> _ = weights.assign([5.0])
      >>> state.restore()
      >>> weights.numpy().tolist()
      [1.0]
    """

    def __init__(
        self,
        variables: Optional[Sequence[Any]] = None,
        session: Any = None,
        checkpoint_dir: Optional[str] = None,
        checkpoint_every: int = 1,
        **kwargs: Any,
    ) -> None:
        if not tf.executing_eagerly():
            session = session or tf.compat.v1.get_default_session()
        given = [] if variables is None else checked_variables(variables, "TensorFlowState")
        own = given or list(tf.compat.v1.global_variables())

        def handler_of(value: Any) -> Optional[handlers.StateHandler]:
            return VariablesHandler(value, list, session) if value is own else handler_of_other(value, session)

        super().__init__(_TREES, handler_of, checkpoint_dir, checkpoint_every, variables=own, **kwargs)
        self.session = session


class TensorFlowKerasState(TensorState):
    """State of a Keras training: ``TensorFlowKerasState(model, optimizer, epoch=0, batch=0)``. The model, the optimizer and all
    other arguments are attributes of the state. Otherwise as :class:`TensorFlowState`.

    Args:
      model: a Keras model that is built, so that it has its variables.
      optimizer: a Keras optimizer, distributed or not; by default the one that the model is compiled with. Its variables are
        created now, so that all ranks have the same.
      backend: the backend of Keras, whose session is used in graphs of tf.compat.v1.
      checkpoint_dir, checkpoint_every, kwargs: as for :class:`TensorFlowState`.

    Raises:
      TypeError: `model` is not a Keras model, or `optimizer` is not a Keras optimizer.
      ValueError: the model is not built.
      OSError: `checkpoint_dir` can't be made or written to.
    """

    def __init__(
        self,
        model: Any,
        optimizer: Any = None,
        backend: Any = None,
        checkpoint_dir: Optional[str] = None,
        checkpoint_every: int = 1,
        **kwargs: Any,
    ) -> None:
        if not getattr(model, "built", True):
            raise ValueError("the model has no variables yet: call model.build(input_shape) before its state is made")
        _check(model, optimizer)
        optimizer = optimizer or getattr(model, "optimizer", None)
        session, variables = None, variables_of_optimizer
        if not tf.executing_eagerly():
            variables = _own_variables
            session = backend.get_session() if backend else tf.compat.v1.get_default_session()
        elif optimizer is not None:
            _make_variables(optimizer, model)

        def handler_of(value: Any) -> Optional[handlers.StateHandler]:
            if value is model:
                return VariablesHandler(value, _variables_of_model, session)
            if value is optimizer and value is not None:
                return OptimizerHandler(value, variables, session)
            return handler_of_other(value, session)

        if optimizer is not None:
            kwargs["optimizer"] = optimizer
        super().__init__(_TREES, handler_of, checkpoint_dir, checkpoint_every, model=model, **kwargs)
        self.backend = backend


def handler_of_other(value: Any, session: Any = None) -> Optional[handlers.StateHandler]:
    """Returns a new handler of a variable, or of an object of TensorFlow or Keras that has variables; None for any other value.

    Raises ValueError if it has not made its variables yet.
    """
    kind = type(value)
    if isinstance(value, tf.Variable):
        return VariablesHandler(value, _itself, session)
    if isinstance(value, tf.random.Generator):
        return VariablesHandler(value, _state_of, session)
    if package_of(value) is None and not isinstance(value, (tf.Module, tf.compat.v1.train.Optimizer)):
        return None
    if hasattr(kind, "assign"):
        return VariablesHandler(value, _itself, session)
    if not getattr(value, "built", True):
        raise ValueError(f"{kind.__name__} has no variables yet: build it before you give it to a state")
    if hasattr(kind, "apply_gradients"):
        return OptimizerHandler(value, variables_of_optimizer if session is None else _own_variables, session)
    return VariablesHandler(value, _own_variables, session) if hasattr(kind, "variables") else None


def _itself(variable: Any) -> list[Any]:
    return [variable]


def _state_of(generator: Any) -> list[Any]:
    return [generator.state]


def _check(model: Any, optimizer: Any) -> None:
    """Raises TypeError if `model` is not a Keras model, or `optimizer` is given and not a Keras optimizer."""
    if not (hasattr(model, "trainable_variables") and hasattr(model, "variables")):
        raise TypeError(f"TensorFlowKerasState needs a model of Keras, got {class_of(model)}")
    if optimizer is not None and not hasattr(optimizer, "variables"):
        raise TypeError(f"TensorFlowKerasState needs an optimizer of Keras, got {class_of(optimizer)}")


def _variables_of_model(model: Any) -> Sequence[Any]:
    variables: Sequence[Any] = model.variables
    return variables


def _own_variables(optimizer: Any) -> list[Any]:
    """Returns the object's own variables; of an optimizer without the learning rate: a session has initialized only those."""
    variables = optimizer.variables
    return list(variables() if callable(variables) else variables)


def _make_variables(optimizer: Any, model: Any) -> None:
    """Creates the slots of an optimizer that has not stepped yet."""
    build = getattr(optimizer, "build", None) or getattr(optimizer, "_create_all_weights", None)
    if build is not None:
        build(model.trainable_variables)


def load_checkpoint(path: Union[str, "os.PathLike[str]"]) -> dict[str, Any]:
    """Returns what is in a checkpoint of a state, by the names of its values, without a job and without the state.

    Args:
      path: a .hvd file; or a folder or URL with checkpoints, of which the newest complete one is read.

    Returns:
      A dict: for variables, models and optimizers the list of their values as arrays; plain values.

    Raises:
      FileNotFoundError: there is no checkpoint.
      ValueError: the file is damaged, or no checkpoint.
    """
    return reading.load(_TREES, path)
