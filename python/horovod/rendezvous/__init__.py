"""A rendezvous server for a scheduler's own process.

One :class:`Server` serves any number of jobs at one port. The scheduler offers slots to a :class:`Job`, which asks for
processes through callbacks::

    from horovod import rendezvous

    with rendezvous.Server("127.0.0.1:0") as server:
        job = server.add_job(2, start_worker=start, stop_worker=stop, finished=print)
        job.offer_slots({"localhost": 2})
        ...  # job.report_exit(worker, process.wait()) for each process that has ended

Alternatively agents start the processes, on any machine. The job then has neither `start_worker` nor `stop_worker`, and
the scheduler starts ``horovod-agent --join ADDRESS --token-file FILE`` on each machine; FILE contains
``job.credentials()``.

This is the C API of ``horovod/rendezvous.h`` in Python; the comments of that header have further details. Programs in C
and C++ and CMake projects find the header and the library with ``python -m horovod.rendezvous --help``.
"""

from horovod.rendezvous._arguments import Host
from horovod.rendezvous._errors import RendezvousError
from horovod.rendezvous._folders import cmake_dir, include_dir, library_dir, pkg_config_dir
from horovod.rendezvous._server import EarlierWorker, Job, KeptJob, Result, Server, Worker

__all__ = [
    "EarlierWorker",
    "Host",
    "Job",
    "KeptJob",
    "RendezvousError",
    "Result",
    "Server",
    "Worker",
    "cmake_dir",
    "include_dir",
    "library_dir",
    "pkg_config_dir",
]
