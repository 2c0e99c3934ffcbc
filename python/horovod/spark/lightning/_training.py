"""The work of each process of a Lightning training."""

import dataclasses
import importlib
import importlib.util
import io
import math
import os
from typing import Any, Optional

import cloudpickle
import torch

import horovod.torch as hvd
from horovod.spark.common._columns import Metadata
from horovod.spark.common._start_method import start_method
from horovod.spark.common._task_rows import with_task_rows
from horovod.spark.lightning._old_hooks import callback_for_old_hooks, with_old_hooks
from horovod.spark.lightning._plain_model import PlainModel
from horovod.spark.torch._training import device_for


@dataclasses.dataclass
class Plan:
    """The model, the data and the options of a training. It can be pickled."""

    package: str  # Lightning
    store: Any
    metadata: Metadata
    data_module: Any  # a class, or None
    data_arguments: dict[str, Any]
    train_rows: int
    val_rows: int
    trainer: dict[str, Any]
    callbacks: list[Any]
    terminate_on_nan: bool
    use_gpu: bool
    seed: Optional[int]
    verbose: int
    start_method: Optional[str]


def train(plan: Plan, pickled: bytes) -> Optional[tuple[dict[str, float], bytes]]:
    """Trains the model; on rank 0 returns what was logged, and the weights, as torch.save has written them."""
    with start_method(plan.start_method):
        return _train(plan, pickled)


def _train(plan: Plan, pickled: bytes) -> Optional[tuple[dict[str, float], bytes]]:
    lightning = importlib.import_module(plan.package)
    hvd.init()
    plan = with_task_rows(plan)
    if plan.seed is not None:
        lightning.seed_everything(plan.seed)
    trained = cloudpickle.loads(pickled)
    module = trained.as_module(plan.package) if isinstance(trained, PlainModel) else trained
    with plan.store.get_local_output_dir() as folder:
        checkpoints = _checkpoint_callback(plan, folder)
        trainer = _trainer(plan, folder, checkpoints)
        trainer.fit(with_old_hooks(module) if _is_new(lightning) else module, datamodule=_data_module(plan))
        if hvd.rank() != 0:
            return None
        if plan.store.saving_runs:
            plan.store.sync(folder)
        if checkpoints in plan.callbacks and checkpoints.best_model_path:
            best = torch.load(checkpoints.best_model_path, map_location="cpu", weights_only=False)
            module.load_state_dict(best["state_dict"])
    model = trained.model if isinstance(trained, PlainModel) else module
    buffer = io.BytesIO()
    torch.save({name: value.cpu() for name, value in model.state_dict().items()}, buffer)
    return {name: float(value) for name, value in trainer.logged_metrics.items()}, buffer.getvalue()


def _is_new(lightning: Any) -> bool:
    return int(lightning.__version__.split(".")[0]) >= 2


def _checkpoint_callback(plan: Plan, folder: str) -> Any:
    """The user's, or one that keeps the newest, for this folder."""
    cls = importlib.import_module(plan.package + ".callbacks").ModelCheckpoint
    found = next((callback for callback in plan.callbacks if isinstance(callback, cls)), None) or cls()
    found.dirpath, found.filename = folder, plan.store.checkpoint_filename
    return found


def _trainer(plan: Plan, folder: str, checkpoints: Any) -> Any:
    lightning = importlib.import_module(plan.package)
    strategy = importlib.import_module("horovod.lightning._strategy").of_package(plan.package)
    callbacks = [
        *plan.callbacks,
        *([] if checkpoints in plan.callbacks else [checkpoints]),
        _own_callback(plan, folder),
    ]
    callbacks += callback_for_old_hooks(plan.callbacks, lightning.Callback)
    given = dict(plan.trainer)
    logger = given.pop("logger")
    device = device_for(plan.use_gpu)
    arguments = {
        "strategy": strategy(),
        "accelerator": "gpu" if device.type == "cuda" else "cpu",
        "devices": [device.index] if device.type == "cuda" else 1,
        "callbacks": callbacks,
        "logger": _default_logger(plan, folder) if logger is None else logger,
        "num_sanity_val_steps": 0,
        "enable_progress_bar": False,
        **given,
    }
    trainer = lightning.Trainer(**arguments)
    if given["profiler"] not in (None, "simple"):  # that one prints
        trainer.profiler.dirpath = os.path.join(folder, plan.store.logs_subdir)
        trainer.profiler.filename = "profile"
    return trainer


def _default_logger(plan: Plan, folder: str) -> Any:
    loggers = importlib.import_module(plan.package + ".loggers")
    path = os.path.join(folder, plan.store.logs_subdir)
    has_tensorboard = importlib.util.find_spec("tensorboard") or importlib.util.find_spec("tensorboardX")
    return loggers.TensorBoardLogger(path) if has_tensorboard else loggers.CSVLogger(path)


def _own_callback(plan: Plan, folder: str) -> Any:
    """Copies checkpoints and logs of an epoch to the store when the next one begins, and checks for losses that are not
    numbers."""
    lightning = importlib.import_module(plan.package)

    class EstimatorCallback(lightning.Callback):  # type: ignore[name-defined,misc]
        def on_train_epoch_start(self, trainer: Any, module: Any) -> None:
            if hvd.rank() == 0 and plan.store.saving_runs:
                plan.store.sync(folder)

        def on_train_batch_end(self, trainer: Any, module: Any, outputs: Any, *_: Any) -> None:
            if plan.terminate_on_nan:
                loss = outputs["loss"] if isinstance(outputs, dict) else outputs
                if loss is not None and not torch.isfinite(torch.as_tensor(loss)).all():
                    raise ValueError(f"the loss is {loss}: terminate_on_nan ends the training")

    return EstimatorCallback()


def _data_module(plan: Plan) -> Any:
    arguments = {
        **plan.data_arguments,
        "cur_shard": hvd.rank(),
        "shard_count": hvd.size(),
        "steps_per_epoch_train": _steps(plan, "train", plan.train_rows),
        "steps_per_epoch_val": _steps(plan, "val", plan.val_rows),
    }
    if plan.data_module is not None:
        return plan.data_module(**arguments)
    module = importlib.import_module("horovod.spark.lightning.datamodule").PetastormDataModule
    return module(metadata=plan.metadata, **arguments)


def _steps(plan: Plan, part: str, rows: int) -> int:
    given: Optional[int] = plan.data_arguments[f"steps_per_epoch_{part}"]
    return given or math.ceil(math.ceil(rows / hvd.size()) / plan.data_arguments[f"{part}_batch_size"])
