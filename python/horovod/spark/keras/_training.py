"""The work of each process of a Keras training."""

import dataclasses
import importlib
import math
import os
from collections.abc import Callable, Iterator
from typing import Any, Optional

import numpy

from horovod._keras.learning_rate_callbacks import LearningRateSchedule
from horovod.spark.common._columns import Metadata, dense_columns
from horovod.spark.common._start_method import start_method
from horovod.spark.common._task_rows import with_task_rows
from horovod.spark.keras._arrays import all_typed, dtypes
from horovod.spark.keras._files import Package, rate_of, scale_rate, shapes
from horovod.spark.task import get_available_devices


@dataclasses.dataclass
class Plan:
    """The model, the data and the options of a training. It can be pickled."""

    package: Package
    custom_objects: dict[str, Any]
    store: Any
    metadata: Metadata
    data: Callable[..., Any]  # makes the data module
    train_steps: Optional[int]
    val_steps: Optional[int]
    train_rows: int
    val_rows: int
    batch_size: int
    val_batch_size: int
    epochs: int
    features: list[str]
    labels: list[str]
    sample_weight: Optional[str]
    label_shapes: Optional[list[list[int]]]
    callbacks: list[Any]
    checkpoint_callback: Any
    compression: Any
    backward_passes: int
    use_gpu: bool
    seed: Optional[int]
    verbose: int
    start_method: Optional[str]


def train(plan: Plan, data: bytes) -> Optional[tuple[dict[str, list[float]], bytes]]:
    """Trains the model; on rank 0 returns the history, and the model as the checkpoint callback has saved it."""
    with start_method(plan.start_method):
        return _train(plan, data)


def _train(plan: Plan, data: bytes) -> Optional[tuple[dict[str, list[float]], bytes]]:
    keras = plan.package.load()
    hvd = plan.package.horovod()
    hvd.init()
    plan = with_task_rows(plan)
    if plan.use_gpu:
        _use_gpu(plan.package.backend, hvd)
    if plan.seed is not None:
        keras.utils.set_random_seed(plan.seed)
    model = _distributed(plan, hvd, plan.package.model(data, plan.custom_objects))
    with plan.data(cur_shard=hvd.rank(), shard_count=hvd.size()) as module, plan.store.get_local_output_dir() as folder:
        path = os.path.join(folder, checkpoint_name(plan.store.checkpoint_filename))
        batches = Batches(plan, model)
        validation = {}
        if plan.val_rows:
            steps = _steps(plan.val_steps, plan.val_rows, plan.val_batch_size, hvd.size())
            validation = {"validation_data": batches.of(module.val_data()), "validation_steps": steps}
        history = model.fit(
            batches.of(module.train_data()),
            steps_per_epoch=_steps(plan.train_steps, plan.train_rows, plan.batch_size, hvd.size()),
            epochs=plan.epochs,
            shuffle=False,  # the data module does
            callbacks=_callbacks(plan, keras, hvd, model, folder, path),
            verbose=plan.verbose if hvd.rank() == 0 else 0,
            **validation,
        )
        if hvd.rank() != 0:
            return None
        if not os.path.exists(path):
            scale_rate(model, 1 / hvd.size())
            model.save(path)
        with open(path, "rb") as file:
            return {name: [float(value) for value in values] for name, values in history.history.items()}, file.read()


def checkpoint_name(name: str) -> str:
    """Returns the file name, with the ending that tells Keras the format."""
    return name if name.endswith((".keras", ".h5")) else name + ".keras"


def _steps(given: Optional[int], rows: int, batch_size: int, size: int) -> int:
    return given or math.ceil(math.ceil(rows / size) / batch_size)


def _distributed(plan: Plan, hvd: Any, model: Any) -> Any:
    """The model with a distributed optimizer, and the learning rate times the number of processes."""
    scale_rate(model, hvd.size())
    settings = {"compression": plan.compression} if plan.compression else {}
    optimizer = model.optimizer
    if plan.backward_passes > 1:
        settings["backward_passes_per_step"] = plan.backward_passes
        optimizer = type(optimizer).from_config(
            optimizer.get_config()
        )  # one that has been loaded can't add up gradients
    model.optimizer = hvd.DistributedOptimizer(optimizer, **settings)
    return model


def _use_gpu(backend: str, hvd: Any) -> None:
    """The one that Spark has given to the task, or that of the local rank, if there are some."""
    assigned = get_available_devices()
    number = int(assigned[0]) if assigned else hvd.local_rank()
    module = importlib.import_module(backend)
    if backend == "torch" and module.cuda.is_available():
        module.cuda.set_device(number)
    if backend == "tensorflow":
        gpus = module.config.list_physical_devices("GPU")
        if gpus:
            module.config.experimental.set_memory_growth(gpus[number], True)
            module.config.set_visible_devices(gpus[number], "GPU")


def _callbacks(plan: Plan, keras: Any, hvd: Any, model: Any, folder: str, path: str) -> list[Any]:
    """Horovod's, the user's, and on rank 0 those that save checkpoints, with the learning rate of one process, and copy them to
    the store."""
    own = [hvd.callbacks.BroadcastGlobalVariablesCallback(0), hvd.callbacks.MetricAverageCallback()]
    logs = [callback for callback in plan.callbacks if isinstance(callback, keras.callbacks.TensorBoard)]
    for callback in logs:
        callback.log_dir = os.path.join(folder, plan.store.logs_subdir)
    others = [callback for callback in plan.callbacks if callback not in logs]
    for callback in others:
        if isinstance(callback, LearningRateSchedule):
            callback.initial_lr = rate_of(model)
    if hvd.rank() != 0:
        return [*own, *others]
    saving = plan.checkpoint_callback or keras.callbacks.ModelCheckpoint(path)
    saving.filepath = path
    if hvd.size() > 1:
        saved = [_Rate(1 / hvd.size()).callback(keras), saving, _Rate(hvd.size()).callback(keras)]
    else:
        saved = [saving]
    synced = [_at_end_of_epoch(keras, lambda _: plan.store.sync(folder))] if plan.store.saving_runs else []
    return [*own, *others, *saved, *logs, *synced]


@dataclasses.dataclass
class _Rate:
    """A factor of the learning rate."""

    factor: float

    def callback(self, keras: Any) -> Any:
        return _at_end_of_epoch(keras, lambda model: scale_rate(model, self.factor))


def _at_end_of_epoch(keras: Any, action: Callable[[Any], None]) -> Any:
    class AtEndOfEpoch(keras.callbacks.Callback):  # type: ignore[misc]
        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            action(self.model)

    return AtEndOfEpoch()


class Batches:
    """Converts the batches of a data module to batches for fit()."""

    def __init__(self, plan: Plan, model: Any) -> None:
        self._plan = plan
        self._input_shapes = shapes(getattr(model, "inputs", None))
        self._label_shapes = plan.label_shapes or shapes(getattr(model, "outputs", None))
        self._input_types = dtypes(getattr(model, "inputs", None))
        self._label_types = [kind if kind == "float64" else None for kind in dtypes(getattr(model, "outputs", None))]

    def of(self, data: Any) -> Iterator[tuple[Any, ...]]:
        return (self._made(batch) for batch in data)  # a generator, which Keras knows

    def _made(self, batch: dict[str, numpy.ndarray]) -> tuple[Any, ...]:
        """(inputs, labels) or (inputs, labels, weights of rows)"""
        plan = self._plan
        columns = dense_columns({name: numpy.asarray(column) for name, column in batch.items()}, plan.metadata)
        inputs = all_typed(plan.features, [columns[name] for name in plan.features], self._input_types, plan.package)
        labels = all_typed(plan.labels, [columns[name] for name in plan.labels], self._label_types, plan.package)
        made = (_one_or_all(_shaped(inputs, self._input_shapes)), _one_or_all(_shaped(labels, self._label_shapes)))
        if plan.sample_weight is None:
            return made
        weights = columns[plan.sample_weight].astype(plan.package.floatx)
        return (*made, _one_or_all([weights] * len(labels)))


def _shaped(columns: list[numpy.ndarray], wanted: Optional[list[list[int]]]) -> list[numpy.ndarray]:
    """Returns the columns, reshaped to these shapes if the number of values matches."""
    if wanted is None:
        return columns
    return [
        column.reshape(len(column), *shape[1:]) if math.prod(column.shape[1:]) == math.prod(shape[1:]) else column
        for column, shape in zip(columns, wanted)
    ]


def _one_or_all(arrays: list[numpy.ndarray]) -> Any:
    return arrays[0] if len(arrays) == 1 else tuple(arrays)
