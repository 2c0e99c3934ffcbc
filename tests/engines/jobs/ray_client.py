"""A driver by Ray Client, with both kinds of executors."""

import sys

import ray

from horovod.ray import RayExecutor, ray_logger

ray.init(sys.argv[1])


def add_up(number):
    import numpy

    import horovod.numpy as hvd

    hvd.init()
    ray_logger.log({"rank": hvd.rank()})
    return float(hvd.allreduce(numpy.full(3, number), op=hvd.Sum)[0])


def fail():
    raise KeyError("on purpose")


assert ray.util.client.ray.is_connected()
for arguments in (dict(num_workers=3), dict(min_workers=2, max_workers=2)):
    executor = RayExecutor(RayExecutor.create_settings(timeout_s=60), **arguments)
    executor.start()
    print(executor.run(add_up, args=[2], callbacks=[lambda value: None]), flush=True)
    if "num_workers" in arguments:
        print(ray.get(executor.run_remote(add_up, args=[3])), executor.execute_single(lambda _: 7), flush=True)
        try:
            executor.run(fail)
        except KeyError:
            print("raised KeyError", flush=True)
    executor.shutdown()
executor = RayExecutor(RayExecutor.create_settings(nics=["nope0"]), num_workers=1)
try:
    executor.start()
except RuntimeError as error:
    print(error)
