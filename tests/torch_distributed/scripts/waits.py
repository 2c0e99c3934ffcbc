"""Works that are waited for more than once: after a signal's handler has raised, by several threads, after the group's end:
waits.py STORE RANK RANKS CASE
"""

import datetime
import random
import signal
import sys
import threading
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist

import horovod.torch.distributed  # noqa: F401

TURNS = 100
NUMBERS = 1000
Started = tuple[Any, Callable[[], bool]]  # a work, and whether its result is right


class Alarm(Exception):
    """What the handler of a signal raises."""


def started_gather() -> Started:
    outputs = [torch.zeros(NUMBERS) for _ in range(dist.get_world_size())]
    work = dist.all_gather(outputs, torch.full((NUMBERS,), 1.0 + dist.get_rank()), async_op=True)
    return work, lambda: [float(output[-1]) for output in outputs] == [1.0, 2.0]


def started_sum() -> Started:
    tensor = torch.full((NUMBERS,), 1.0 + dist.get_rank())
    return dist.all_reduce(tensor, async_op=True), lambda: bool((tensor == 3.0).all())


def started_message() -> Started:
    tensor = torch.full((NUMBERS,), 1.0 + dist.get_rank())
    work = dist.irecv(tensor, 1) if dist.get_rank() == 0 else dist.isend(tensor, 0)
    return work, lambda: bool((tensor == 2.0).all())


KINDS = (started_gather, started_sum, started_message)


def alarm(*_: object) -> None:
    raise Alarm


def wait_with_alarm(work: Any, seconds: float) -> None:
    """Waits, and once more if the alarm ends it."""
    try:
        signal.setitimer(signal.ITIMER_REAL, seconds)
        try:
            work.wait()
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    except Alarm:
        work.wait()


def signals(chance: random.Random) -> None:
    signal.signal(signal.SIGALRM, alarm)
    for start in KINDS:
        for _ in range(TURNS):
            dist.barrier()
            work, is_right = start()
            wait_with_alarm(work, chance.uniform(1e-5, 1e-3))
            assert is_right(), start


def wait_in_turns(work: Any, failures: list[BaseException]) -> None:
    while True:
        try:
            work.wait(datetime.timedelta(microseconds=500))
            return
        except RuntimeError as error:
            if "is over" not in str(error):
                failures.append(error)
                return


def threads(chance: random.Random) -> None:
    failures: list[BaseException] = []
    for start in KINDS:
        for _ in range(TURNS):
            work, is_right = start()
            waiting = [threading.Thread(target=wait_in_turns, args=(work, failures)) for _ in range(3)]
            for thread in waiting:
                thread.start()
            for thread in waiting:
                thread.join()
            assert is_right(), start
    assert not failures, failures


def late_future(chance: random.Random) -> None:
    tensors = [torch.ones(4) for _ in range(TURNS)]
    works = [dist.all_reduce(tensor, async_op=True) for tensor in tensors]
    dist.barrier()
    dist.destroy_process_group()
    for future in [work.get_future() for work in works]:
        future.wait()
    assert all(bool((tensor == 2.0).all()) for tensor in tensors)


store, rank, size = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
dist.init_process_group("hvd", init_method=store, rank=rank, world_size=size, timeout=datetime.timedelta(seconds=60))
{"signals": signals, "threads": threads, "late_future": late_future}[sys.argv[4]](random.Random(rank))
print("all right", flush=True)
