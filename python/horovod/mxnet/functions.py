"""Broadcasts of models and Python objects."""

from collections.abc import Mapping
from typing import Any, Optional

from mxnet.gluon.parameter import DeferredInitializationError, Parameter, ParameterDict

from horovod.common import ops
from horovod.common.collective import Call
from horovod.common.objects import allgather_object, broadcast_object
from horovod.common.process_sets import global_process_set
from horovod.mxnet.mpi_ops import _collectives, broadcast_

__all__ = ["allgather_object", "broadcast_object", "broadcast_parameters"]


def broadcast_parameters(params: Mapping[str, Any], root_rank: int = 0, prefix: Optional[str] = None) -> None:
    """Overwrites parameters with those of rank `root_rank`, in place.

    A parameter whose shape is not known yet is broadcast when it is initialized, in the first forward pass. Which parameters
    these are may differ between ranks.

    Args:
      params: ``net.collect_params()``, or a dict of arrays or parameters, such as those of ``module.get_params()``. Keys,
        shapes and dtypes are the same on all ranks.
      root_rank: the rank whose values all ranks get.
      prefix: a prefix of the operations' names.

    Raises:
      ValueError: `params` has another type.
    """
    if not isinstance(params, (dict, ParameterDict)):
        raise ValueError(f"invalid params of type: {type(params)}")
    started = []
    for key, value in sorted(params.items()):
        name = (prefix or "") + str(key)
        try:
            array = value.data() if isinstance(value, Parameter) else value
        except DeferredInitializationError:
            _broadcast_once_initialized(value, root_rank, name)
            continue
        call = Call(name, global_process_set, True, {"root_rank": root_rank})
        started.append(_collectives.broadcast.start(array, call))
    for handle in started:
        ops.synchronize(handle)


def _broadcast_once_initialized(param: Parameter, root_rank: int, name: str) -> None:
    initialize = param._init_impl

    def initialize_and_broadcast(*args: Any, **kwargs: Any) -> None:
        param._init_impl = initialize
        initialize(*args, **kwargs)
        broadcast_(param.data(), root_rank, name)

    param._init_impl = initialize_and_broadcast
