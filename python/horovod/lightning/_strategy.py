"""HorovodStrategy for Lightning 2.x, without Lightning's base classes, of which two packages have a copy each."""

import contextlib
import importlib
from collections.abc import Iterator
from typing import Any, Callable, Optional

import torch

import horovod.torch as hvd
from horovod.common.process_sets import size_of
from horovod.common.util import is_elastic
from horovod.lightning._gradients import GradientReducer
from horovod.lightning._metrics import SynchronizedMetrics, process_set_of
from horovod.lightning._sync_batch_norm import SyncBatchNormLayers
from horovod.torch._closure_loss import decides_by_loss, loss_of_all

_ELASTIC = (
    "HorovodStrategy does not work in elastic jobs: Lightning's loops can't go back to a commit. "
    "Run a job of fixed size and go on from a checkpoint (trainer.fit(..., ckpt_path=...)), or "
    "write the loop with hvd.elastic.run."
)
_REDUCTIONS = {
    "mean": hvd.Average,
    "avg": hvd.Average,
    "sum": hvd.Sum,
    "min": hvd.Min,
    "max": hvd.Max,
    "product": hvd.Product,
}


# A mixin: the next base class is Lightning's ParallelStrategy, of one of two packages.
_Behind: Any = object


class HorovodStrategyMixin(_Behind):  # type: ignore[misc]
    """Trains with the processes that horovodrun has started; Lightning starts none.

    Weights and the optimizers' states are rank 0's at the start. Gradients are averaged over all ranks during backward(),
    once per step whatever ``accumulate_grad_batches`` is, and before hooks, clipping and gradient scalers read them. A
    distributed sampler distributes the data. Rank 0 writes checkpoints, and all ranks read them. Values logged with
    ``sync_dist=True`` and torchmetrics' metrics are reduced over all ranks.

    Unlike the strategy of Lightning 1.x, learning rates are used as they are; to scale them with the combined batch, multiply
    by ``hvd.size()``. As with Lightning's other strategies of several processes, ``self.all_gather`` stacks on a new first
    dimension. Not supported: elastic jobs, a parameter in two optimizers, ``torch.compile`` of the whole LightningModule.

    Args:
      accelerator, parallel_devices, checkpoint_io, precision_plugin: as for Lightning's strategies.

    Raises:
      RuntimeError: the job is elastic.
    """

    strategy_name = "horovod"
    is_distributed = True  # has Lightning use distributed samplers, and sync_dist
    _lightning = ""  # the package
    model: Any  # Lightning sets these two
    _layer_sync: Any

    def __init__(
        self,
        accelerator: object = None,
        parallel_devices: object = None,
        checkpoint_io: Any = None,
        precision_plugin: object = None,
    ) -> None:
        if is_elastic():
            raise RuntimeError(_ELASTIC)
        hvd.init()
        super().__init__(
            accelerator=accelerator,
            parallel_devices=parallel_devices,
            cluster_environment=self._environment(),
            checkpoint_io=checkpoint_io,
            precision_plugin=precision_plugin,
        )
        self._gradients: Optional[GradientReducer] = None
        self._metrics: Optional[SynchronizedMetrics] = None
        _import(self._lightning, ".utilities.rank_zero").rank_zero_only.rank = hvd.rank()

    # Where this process is.

    @property
    def root_device(self) -> torch.device:
        """This process's device. Of at least as many devices as there are processes on the machine, it is the one with the local
        rank. A single device is used as it is, unless it is a CUDA device and there are enough of them: then it is the CUDA
        device whose number is the local rank.
        """
        devices: list[torch.device] = self.parallel_devices
        if len(devices) >= hvd.local_size():
            return devices[hvd.local_rank()]
        if len(devices) > 1:
            raise ValueError(
                f"Trainer(devices=...) names {len(devices)} devices for {hvd.local_size()} processes on this host: use devices=1 "
                "or as many as processes."
            )
        if devices[0].type == "cuda" and torch.cuda.device_count() >= hvd.local_size():
            return torch.device("cuda", hvd.local_rank())
        return devices[0]

    @property
    def distributed_sampler_kwargs(self) -> dict[str, Any]:
        """The arguments of Lightning's distributed samplers: the number of ranks, and this rank."""
        return {"num_replicas": hvd.size(), "rank": hvd.rank()}

    # The life of a run.

    def setup(self, trainer: Any) -> None:
        """Gives all ranks rank 0's weights and optimizer states, and prepares the reduction of gradients. Lightning calls it.

        Args:
          trainer: the trainer.
        """
        self.accelerator.setup(trainer)
        fitting = trainer.state.fn == "fit"
        if fitting and self._layer_sync is not None:
            if isinstance(self._layer_sync, _torch_sync_batch_norm(self._lightning)):
                self._layer_sync = SyncBatchNormLayers()
            self.model = self._layer_sync.apply(self.model)
        self.model = self.precision_plugin.convert_module(self.model)
        self.model_to_device()
        hvd.broadcast_parameters(_tensors(self.model), root_rank=0)
        self._metrics = SynchronizedMetrics(self.model)
        if fitting:
            self.setup_optimizers(trainer)
        self.setup_precision_plugin()
        if fitting:
            self._broadcast_optimizers()
            self._gradients = GradientReducer(self.lightning_module, self.optimizers)

    def model_to_device(self) -> None:
        """Moves the model to this process's device. Lightning calls it."""
        self.model.to(self.root_device)

    def _broadcast_optimizers(self) -> None:
        for optimizer in self.optimizers:
            hvd.broadcast_optimizer_state(optimizer, root_rank=0)

    def load_optimizer_state_dict(self, checkpoint: object) -> None:
        """Loads the optimizers' states from a checkpoint, and gives all ranks rank 0's. Lightning calls it.

        Args:
          checkpoint: the checkpoint.
        """
        super().load_optimizer_state_dict(checkpoint)
        self._broadcast_optimizers()

    def teardown(self) -> None:
        """Ends the run. It communicates nothing, so that an exception on one rank is raised and ends the job."""
        self._gradients = None
        if self._metrics is not None:
            self._metrics.restore()
        if isinstance(self._layer_sync, SyncBatchNormLayers):
            self._layer_sync.revert(self.model)
        super().teardown()

    # Training.

    def backward(
        self, closure_loss: torch.Tensor, optimizer: torch.optim.Optimizer, *args: Any, **kwargs: object
    ) -> Any:
        """Computes and reduces gradients. The hooks are called with reduced gradients.

        Args:
          closure_loss, optimizer, args, kwargs: as for Lightning's strategies.

        Returns:
          The loss.
        """
        self.pre_backward(closure_loss)
        assert self._gradients is not None, "setup() comes first"
        self._gradients.prepare()
        plugin, module = self.precision_plugin, self.lightning_module
        closure_loss = plugin.pre_backward(closure_loss, module)
        plugin.backward(closure_loss, module, optimizer, *args, **kwargs)
        self._gradients.finish()
        closure_loss = plugin.post_backward(closure_loss, module)
        self.post_backward(closure_loss)
        return closure_loss

    def optimizer_step(
        self, optimizer: torch.optim.Optimizer, closure: Callable[[], Any], *args: Any, **kwargs: Any
    ) -> Any:
        """Steps. An optimizer that may decide by the closure's loss, such as LBFGS, gets the average of the ranks' losses. Lightning
        calls it.

        Args:
          optimizer, closure, args, kwargs: as for Lightning's strategies.

        Returns:
          What the optimizer's step returns.
        """
        if decides_by_loss(type(optimizer)):
            own = closure

            def closure() -> object:
                return loss_of_all(own(), "horovod.loss", False, hvd.global_process_set)

        return super().optimizer_step(optimizer, closure, *args, **kwargs)

    @contextlib.contextmanager
    def block_backward_sync(self) -> Iterator[None]:
        """Returns a context in which gradients are accumulated on this rank. The first backward() after it reduces the sum."""
        with contextlib.nullcontext() if self._gradients is None else self._gradients.no_sync():
            yield

    # What Lightning asks of all ranks.

    def reduce(self, tensor: object, group: object = None, reduce_op: object = "mean") -> Any:
        """Returns the reduction of the ranks' tensors; a value that is not a tensor is returned as it is.

        Args:
          tensor: the tensor. Means of integers are floating-point numbers.
          group: None for all ranks, or a hvd.ProcessSet.
          reduce_op: "mean", "avg", "sum", "min", "max", "product" or a ReduceOp of these.

        Raises:
          ValueError: `group` or `reduce_op` is invalid.
        """
        if not isinstance(tensor, torch.Tensor):
            return tensor
        members = process_set_of(group)
        name = "mean" if reduce_op is None else str(reduce_op).rpartition(".")[2].lower()
        if name not in _REDUCTIONS:
            raise ValueError(f"reduce_op={reduce_op!r} is none of {list(_REDUCTIONS)}")
        op = _REDUCTIONS[name]
        if op == hvd.Average and not tensor.is_floating_point() and not tensor.is_complex():
            return hvd.allreduce(tensor, op=hvd.Sum, process_set=members) / size_of(members)
        return hvd.allreduce(tensor, op=op, process_set=members)

    def all_gather(self, tensor: torch.Tensor, group: object = None, sync_grads: bool = False) -> torch.Tensor:
        """Returns the ranks' tensors, stacked as [ranks, ...].

        Args:
          tensor: the tensor. Shape and dtype are the same on all ranks.
          group: None for all ranks, or a hvd.ProcessSet.
          sync_grads: whether the result has a gradient, which is the sum of the ranks' gradients.
        """
        members = process_set_of(group)
        with contextlib.nullcontext() if sync_grads else torch.no_grad():
            row = tensor.unsqueeze(0)
            if row.requires_grad:  # hvd.allgather's gradient is the average
                row.register_hook(lambda grad: grad * members.size())
            return hvd.allgather(row, process_set=members)

    def broadcast(self, obj: object, src: int = 0) -> Any:
        """Returns the object of rank `src` on all ranks.

        Args:
          obj: any object that cloudpickle can pickle.
          src: the root's rank.
        """
        return hvd.broadcast_object(obj, src)

    def barrier(self, name: Optional[str] = None) -> None:
        """Waits for all ranks, unless an exception ends the run: the other ranks may not have it.

        Args:
          name: not used.
        """
        module = self.lightning_module
        trainer = None if module is None else module._trainer
        if trainer is None or not trainer.interrupted:
            hvd.barrier()


class HorovodEnvironmentMixin:
    """The cluster environment, as Lightning calls it: horovodrun starts the processes."""

    creates_processes_externally = True

    @property
    def main_address(self) -> str:
        raise NotImplementedError("horovodrun's processes find each other without an address.")

    main_port = main_address

    @staticmethod
    def detect() -> bool:
        return False  # only HorovodStrategy uses it

    def world_size(self) -> int:
        return hvd.size()

    def set_world_size(self, size: int) -> None:
        pass

    def global_rank(self) -> int:
        return hvd.rank()

    def set_global_rank(self, rank: int) -> None:
        pass

    def local_rank(self) -> int:
        return hvd.local_rank()

    def node_rank(self) -> int:
        return hvd.cross_rank()


def _tensors(module: torch.nn.Module) -> list[tuple[str, torch.Tensor]]:
    return [*module.named_parameters(), *module.named_buffers()]


def _import(package: str, name: str) -> Any:
    return importlib.import_module(package + name)


def _torch_sync_batch_norm(package: str) -> type:
    layers: type = _import(package, ".plugins.layer_sync").TorchSyncBatchNorm
    return layers


def of_package(package: str) -> type:
    """Returns the strategy for ``lightning.pytorch`` or ``pytorch_lightning``, which is registered there as "horovod". For
    Lightning 1.x it is Lightning's own.
    """
    lightning = importlib.import_module(package)
    strategies = _import(package, ".strategies")
    if int(lightning.__version__.split(".")[0]) < 2:
        lightnings_own: type = strategies.HorovodStrategy
        return lightnings_own
    environment = _import(package, ".plugins.environments").ClusterEnvironment
    place: dict[str, Any] = {"__module__": "horovod.lightning"}
    own = type("HorovodEnvironment", (HorovodEnvironmentMixin, environment), dict(place))
    place.update(_lightning=package, _environment=own, __doc__=HorovodStrategyMixin.__doc__)
    bases = (HorovodStrategyMixin, strategies.ParallelStrategy)
    strategy = type("HorovodStrategy", bases, place)
    strategies.StrategyRegistry.register(
        "horovod", strategy, description="processes started by horovodrun", override=True
    )
    return strategy
