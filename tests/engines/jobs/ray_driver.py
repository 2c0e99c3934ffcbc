"""A driver that waits, with two workers, to be killed."""

import os
import sys

import ray

from horovod.ray import RayExecutor

ray.init(address=sys.argv[1], log_to_driver=False)
executor = RayExecutor(RayExecutor.create_settings(), num_workers=2)
executor.start()
print(*executor.execute(lambda _: os.getpid()), flush=True)
sys.stdin.read()
