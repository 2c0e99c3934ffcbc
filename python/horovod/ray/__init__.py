"""Horovod on Ray: the workers are actors of a Ray cluster::

    import ray
    from horovod.ray import RayExecutor

    ray.init()
    executor = RayExecutor(RayExecutor.create_settings(), num_workers=4)
    executor.start()
    results = executor.run(train)  # train calls hvd.init()
    executor.shutdown()

With ``min_workers`` in place of ``num_workers`` the job is elastic. ``horovod.ray.train`` has the backend for Ray Train.
"""

from horovod import _missing

_missing.framework("ray", "horovod.ray needs Ray 2.3 or later: pip install ray")

from horovod.ray.elastic import ElasticRayExecutor  # noqa: E402
from horovod.ray.runner import RayExecutor  # noqa: E402
from horovod.ray.worker import BaseHorovodWorker  # noqa: E402

__all__ = ["BaseHorovodWorker", "ElasticRayExecutor", "RayExecutor"]
