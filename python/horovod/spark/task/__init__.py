"""What a function of ``horovod.spark.run`` can ask about the Spark task that it runs in."""

import json
import os

# The addresses of the task's GPUs, a JSON list, in the environment of the task's worker.
DEVICES_VARIABLE = "HOROVOD_SPARK_TASK_GPUS"


def get_available_devices() -> list[str]:
    """The addresses (indexes, as text) of the GPUs that Spark has given to this task: with
    ``spark.task.resource.gpu.amount``. Empty without, and outside of ``horovod.spark.run``."""
    devices: list[str] = json.loads(os.environ.get(DEVICES_VARIABLE, "[]"))
    return devices
