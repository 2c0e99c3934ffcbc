"""A session hook that broadcasts variables."""

from typing import Any

from horovod.tensorflow._library import tf
from horovod.tensorflow.functions import broadcast_global_variables
from horovod.tensorflow.util import on_device

_SessionRunHook: Any = tf.compat.v1.train.SessionRunHook


class BroadcastGlobalVariablesHook(_SessionRunHook):  # type: ignore[misc]  # TensorFlow is Any here
    """Gives all ranks rank `root_rank`'s global variables when a session of tf.compat.v1.train.MonitoredTrainingSession begins,
    whether they have initial values or come from a checkpoint.

    Args:
      root_rank: the rank in the world whose values all ranks get.
      device: the device for the operations; "": TensorFlow chooses.
    """

    def __init__(self, root_rank: int, device: str = "") -> None:
        super().__init__()
        self.root_rank = root_rank
        self.device = device
        self.bcast_op: Any = None

    def begin(self) -> None:
        """Makes the operation, before the graph is finalized."""
        if self.bcast_op is None or self.bcast_op.graph is not tf.compat.v1.get_default_graph():
            with on_device(self.device):
                self.bcast_op = broadcast_global_variables(self.root_rank)

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Runs the operation.

        Args:
          session: the session.
          coord: not used.
        """
        session.run(self.bcast_op)
