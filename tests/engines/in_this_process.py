"""The backend of the estimators' tests that need one process only."""

import cloudpickle

import horovod.numpy as hvd
from horovod.spark.common.backend import Backend


class InThisProcess(Backend):
    """Trains in this process, by arguments that are pickled as for another one. `plan` and `env` are those of the last run."""

    plan = env = None

    def run(self, fn, args=(), kwargs=None, env=None):
        self.env = env
        function, *rest = cloudpickle.loads(cloudpickle.dumps([fn, *args]))
        self.plan = rest[0]
        try:
            return [function(*rest, **(kwargs or {}))]
        finally:
            hvd.shutdown()

    def num_processes(self):
        return 1
