"""Broadcasts of pytrees of parameters."""

from typing import Any

from horovod.common.collective_kinds import check_root
from horovod.common.interface import ProcessSet, global_process_set
from horovod.elastic.stream import broadcast_tree
from horovod.jax import _leaves
from horovod.jax._operations import outside

__all__ = ["broadcast_parameters"]


@outside
def broadcast_parameters(tree: Any, root_rank: int = 0, process_set: ProcessSet = global_process_set) -> Any:
    """Returns rank `root_rank`'s pytree on all ranks: parameters, an optimizer's state, or any other.

    Args:
      tree: a pytree of the same structure on all ranks. Arrays may be random keys too. Leaves that are not arrays are
        pickled.
      root_rank: the root's rank in the world, also with a process set.
      process_set: the ranks that take part.

    Returns:
      The root's pytree.

    Raises:
      ValueError: `root_rank` is not in the process set, or the root's tree has another number of arrays or other leaves.

    Example:
      >>> import jax.numpy as jnp
      >>> hvd.broadcast_parameters({"w": jnp.array([1.0])})["w"].tolist()
      [1.0]
    """
    check_root(root_rank, process_set)
    leaves = broadcast_tree(_leaves.TREES, _leaves.leaves_of(tree), root_rank, "parameters", process_set)
    return _leaves.with_leaves(tree, leaves)
