"""Horovod for JAX: ``import horovod.jax as hvd``."""

from typing import Any, Optional

from horovod.common._essentials import *
from horovod.common.interface import *
from horovod.common.interface import Average, ProcessSet, global_process_set
from horovod.jax import _kinds, _primitives
from horovod.jax._kinds import Settings
from horovod.jax._library import jax


def allreduce(
    tree: Any,
    name: Optional[str] = None,
    op: int = Average,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> Any:
    leaves, structure = jax.tree_util.tree_flatten(tree)
    is_group = not jax.tree_util.treedef_is_leaf(structure)
    settings = Settings(name, process_set, is_group, op, prescale_factor, postscale_factor)
    return structure.unflatten(_primitives.bind(_kinds.allreduce, [jax.numpy.asarray(x) for x in leaves], settings))
