"""The transfer of the values of ``ray_logger.log`` from the workers to the driver's callbacks."""

import threading
from collections.abc import Sequence
from typing import Any, Callable, Optional

import ray
from ray.util.queue import Queue
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy


class CallbackQueue:
    """A queue into which workers put values, and a thread that calls all `callbacks` with each value. A context manager: at its end
    all values have been processed, and an exception of a callback is raised.
    """

    def __init__(self, callbacks: Sequence[Callable[[Any], Any]]) -> None:
        self._callbacks = callbacks
        self._error: Optional[BaseException] = None
        # It must survive the loss of a node.
        here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
        self.queue = Queue(actor_options={"num_cpus": 0, "scheduling_strategy": here})
        self._thread = threading.Thread(target=self._pass_on, name="horovod callbacks", daemon=True)
        self._thread.start()

    def _pass_on(self) -> None:
        while True:
            last, value = self.queue.get()
            if last:
                return
            try:
                for callback in self._callbacks:
                    callback(value)
            except BaseException as error:  # also SystemExit: the thread must go on until all values are processed
                self._error = self._error or error

    def __enter__(self) -> "CallbackQueue":
        return self

    def __exit__(self, kind: Any, *exception: Any) -> None:
        self.queue.put((True, None))
        self._thread.join()
        self.queue.shutdown()
        if self._error is not None and kind is None:
            raise self._error
