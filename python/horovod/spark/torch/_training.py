"""The part of each process in an estimator's training."""

import dataclasses
import inspect
import io
import itertools
import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Callable, Optional, Union

import cloudpickle
import torch

import horovod.torch as hvd
from horovod.spark.common._columns import CUSTOM_SPARSE, Metadata, unpacked
from horovod.spark.common._start_method import start_method
from horovod.spark.common._task_rows import with_task_rows
from horovod.spark.task import get_available_devices
from horovod.spark.torch._floats import as_floats
from horovod.spark.torch._losses import Function, Means, as_list, calculate_loss, shaped_labels
from horovod.spark.torch._summary import SummaryLog
from horovod.torch.compression import Compression, Compressor

State = dict[str, Any]  # of the model and the optimizer


@dataclasses.dataclass
class Plan:
    """The model, the data and the settings of a training. Picklable."""

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
    input_shapes: Optional[list[list[int]]]
    label_shapes: Optional[list[list[int]]]
    loss_fns: Optional[list[Function]]
    loss_constructors: Optional[list[Callable[..., Function]]]
    loss_weights: list[float]
    metrics: list[list[Function]]
    train_minibatch: Optional[Callable[..., Any]]
    compression: Optional[type[Compressor[torch.Tensor]]]
    backward_passes: int
    use_gpu: bool
    seed: Optional[int]
    verbose: int
    start_method: Optional[str]


def train(plan: Plan, pickled: bytes) -> Optional[tuple[list[dict[str, Any]], bytes]]:
    """Trains the model with the optimizer, which are pickled together. On rank 0 returns the history and the state at the end, as
    written by torch.save.
    """
    hvd.init()
    plan = with_task_rows(plan)
    if plan.seed is not None:
        torch.manual_seed(plan.seed)
    with start_method(plan.start_method):
        model, optimizer = cloudpickle.loads(pickled)
        return Training(plan, model, optimizer).run()


def _takes_passes(train_minibatch: Callable[..., object]) -> bool:
    """Returns whether the function also takes backward_passes_per_step and the number of the batch, as in Horovod 0.28. Such a
    function makes the step of a batch when it is called for the next one.
    """
    try:
        inspect.signature(train_minibatch).bind(*[None] * 9)
    except (TypeError, ValueError):
        return False
    return True


class Training:
    """One process's part."""

    def __init__(self, plan: Plan, model: torch.nn.Module, optimizer: torch.optim.Optimizer) -> None:
        self._plan, self._model = plan, model
        self._device = device_for(plan.use_gpu)
        model.to(self._device)
        optimizer.load_state_dict(with_scaled_rate(optimizer.state_dict(), hvd.size()))  # moves it to the device
        self._optimizer = hvd.DistributedOptimizer(
            optimizer,
            model.named_parameters(),
            backward_passes_per_step=plan.backward_passes,
            compression=plan.compression or Compression.none,
        )
        self._loss_fns = plan.loss_fns or [make(model=model, hvd=hvd) for make in plan.loss_constructors or []]

    def run(self) -> Optional[tuple[list[dict[str, Any]], bytes]]:
        plan = self._plan
        with (
            plan.data(cur_shard=hvd.rank(), shard_count=hvd.size()) as data,
            plan.store.get_local_output_dir() as folder,
        ):
            train_batches = self._batches(data.train_data(), "training", plan.train_rows, plan.batch_size)
            val_batches = None
            if plan.val_rows:
                val_batches = self._batches(data.val_data(), "validation", plan.val_rows, plan.val_batch_size)
            log = SummaryLog(os.path.join(folder, plan.store.logs_subdir), hvd.rank() == 0 and plan.store.saving_runs)
            history = []
            for epoch in range(plan.epochs):
                entry = {"epoch": epoch, "train": self._train(train_batches)}
                if val_batches is not None:
                    entry["validation"] = self._validate(val_batches)
                history.append(entry)
                self._finish_epoch(entry, log, folder)
            log.close()
        return (history, self._saved()) if hvd.rank() == 0 else None

    def _batches(
        self, data: Iterable[dict[str, torch.Tensor]], kind: str, rows: int, batch_size: int
    ) -> Iterator[dict[str, torch.Tensor]]:
        """Returns the batches, except those that are too short for shapes of a fixed size. Raises ValueError if these are all."""
        if not self._has_fixed_shapes():
            return iter(data)
        batches = whole_batches(data, self._plan.labels[0], kind, self._of_this_rank(rows), batch_size)
        return itertools.chain([next(batches)], batches)  # it raises before the training

    @staticmethod
    def _of_this_rank(rows: int) -> int:
        return -(-rows // hvd.size())

    def _has_fixed_shapes(self) -> bool:
        return any(-1 not in shape for shape in self._plan.input_shapes or [])

    def _steps(self, given: Optional[int], rows: int, batch_size: int) -> int:
        if given is not None:
            return given
        of_this_rank = self._of_this_rank(rows)
        return max(1, of_this_rank // batch_size if self._has_fixed_shapes() else -(-of_this_rank // batch_size))

    def _train(self, batches: Iterator[dict[str, torch.Tensor]]) -> dict[str, Any]:
        plan, means = self._plan, self._means()
        steps_late = plan.train_minibatch is not None and _takes_passes(plan.train_minibatch)
        self._model.train()
        steps = self._steps(plan.train_steps, plan.train_rows, plan.batch_size)
        for step in range(steps):
            inputs, labels, weights = self._prepared(next(batches))
            if plan.train_minibatch is None:
                is_last = step + 1 == steps or (step + 1) % plan.backward_passes == 0
                outputs, labels, loss = self._minibatch(
                    inputs, labels, weights, step % plan.backward_passes == 0, is_last
                )
            else:
                more = (plan.backward_passes, step) if steps_late else ()
                outputs, loss = plan.train_minibatch(
                    self._model, self._optimizer, self._transformed, self._loss, inputs, labels, weights, *more
                )
                outputs, labels = self._transformed(outputs, labels)
            means.update(loss, outputs, labels)
        if steps_late:
            self._optimizer.step()
        return means.result(hvd.allreduce)

    def _minibatch(
        self,
        inputs: list[torch.Tensor],
        labels: list[torch.Tensor],
        weights: Optional[torch.Tensor],
        is_first: bool,
        is_last: bool,
    ) -> tuple[list[torch.Tensor], list[torch.Tensor], torch.Tensor]:
        """Trains on one of the batches whose gradients are accumulated."""
        if is_first:
            self._optimizer.zero_grad()
        outputs, labels = self._transformed(self._model(*inputs), labels)
        loss = self._loss(outputs, labels, weights)
        passes = self._plan.backward_passes
        (loss / passes if passes > 1 else loss).backward()
        if is_last:
            self._optimizer.step()
        return outputs, labels, loss

    def _validate(self, batches: Iterator[dict[str, torch.Tensor]]) -> dict[str, Any]:
        plan, means = self._plan, self._means()
        self._model.eval()
        with torch.no_grad():
            for _ in range(self._steps(plan.val_steps, plan.val_rows, plan.val_batch_size)):
                inputs, labels, weights = self._prepared(next(batches))
                outputs, labels = self._transformed(self._model(*inputs), labels)
                means.update(self._loss(outputs, labels, weights), outputs, labels)
        return means.result(hvd.allreduce)

    def _means(self) -> Means:
        return Means(self._plan.metrics, self._plan.labels)

    def _prepared(
        self, batch: dict[str, torch.Tensor]
    ) -> tuple[list[torch.Tensor], list[torch.Tensor], Optional[torch.Tensor]]:
        """Returns inputs, labels, and weights of the rows or None, on the device."""
        plan = self._plan
        inputs = [self._column(batch, name) for name in plan.features]
        if plan.input_shapes:
            inputs = [values.reshape(tuple(shape)) for values, shape in zip(inputs, plan.input_shapes)]
        labels = [self._column(batch, name) for name in plan.labels]
        weights = batch[plan.sample_weight].float().to(self._device) if plan.sample_weight else None
        return inputs, labels, weights

    def _column(self, batch: dict[str, torch.Tensor], name: str) -> torch.Tensor:
        values, metadata = batch[name], self._plan.metadata.get(name, {})
        if metadata.get("intermediate_format") == CUSTOM_SPARSE:
            values = torch.from_numpy(unpacked(values.numpy(), metadata["shape"]))
        return as_floats(name, values).to(self._device)

    def _transformed(
        self, outputs: Union[torch.Tensor, Sequence[torch.Tensor]], labels: list[torch.Tensor]
    ) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
        listed = as_list(outputs)
        return listed, shaped_labels(labels, listed, self._plan.label_shapes)

    def _loss(
        self, outputs: Sequence[torch.Tensor], labels: Sequence[torch.Tensor], weights: Optional[torch.Tensor]
    ) -> torch.Tensor:
        return calculate_loss(outputs, labels, self._plan.loss_weights, self._loss_fns, weights)

    def _finish_epoch(self, entry: dict[str, Any], log: SummaryLog, folder: str) -> None:
        if hvd.rank() != 0:
            return
        if self._plan.verbose:
            print(entry, flush=True)
        log.add(entry)
        if self._plan.store.saving_runs:
            with open(os.path.join(folder, self._plan.store.checkpoint_filename), "wb") as file:
                file.write(self._saved())
            self._plan.store.sync(folder)

    def _saved(self) -> bytes:
        """Returns the state, with the learning rate of one process."""
        optimizer = with_scaled_rate(self._optimizer.state_dict(), 1 / hvd.size())
        buffer = io.BytesIO()
        torch.save({"model": self._model.state_dict(), "optimizer": optimizer}, buffer)
        return buffer.getvalue()


def whole_batches(
    data: Iterable[dict[str, torch.Tensor]], column: str, kind: str, rows: int, batch_size: int
) -> Iterator[dict[str, torch.Tensor]]:
    """Yields the batches of `batch_size` rows. Raises ValueError if there is none among `rows` rows, those of an epoch."""
    dropped = 0
    for batch in data:
        length = len(batch[column])
        if length == batch_size:
            dropped = 0
            yield batch
            continue
        dropped += length
        if dropped >= rows:
            name = "batch_size" if kind == "training" else "val_batch_size"
            raise ValueError(
                f"input_shapes has a shape without -1, so batches must be whole, but the {dropped} rows for {kind} of a process "
                f"make no batch of {name}={batch_size}: give a smaller {name}, more rows, fewer processes, or a shape with -1"
            )


def with_scaled_rate(state: State, factor: float) -> State:
    """Returns the state of an optimizer with learning rates times `factor`."""
    groups = [{**group, "lr": group["lr"] * factor} for group in state["param_groups"]]
    return {**state, "param_groups": groups}


def device_for(use_gpu: bool) -> torch.device:
    """Returns the GPU that Spark has assigned to the task, or the one of the local rank; the CPU without GPUs. Raises RuntimeError if
    only some ranks have GPUs.
    """
    has_gpu = use_gpu and torch.cuda.is_available()
    if len(set(hvd.allgather_object(has_gpu, name="horovod.estimator.has_gpu"))) > 1:
        raise RuntimeError("some processes have GPUs and some have none: use_gpu=False trains on CPUs")
    if not has_gpu:
        return torch.device("cpu")
    assigned = get_available_devices()
    device = torch.device("cuda", int(assigned[0]) if assigned else hvd.local_rank())
    torch.cuda.set_device(device)
    return device
