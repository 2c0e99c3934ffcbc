"""Steps with a few gradients, as many as the first argument says. With a second one, the timeline's file, it then says when all of them are in
there, and goes on without end."""

import json
import signal
import sys
from pathlib import Path

import torch

import horovod.torch as hvd
from waiting import wait_until


def is_written(timeline, tensors):
    """Whether the timeline is whole, with this many tensors of each rank."""
    try:
        events = json.loads(timeline.read_text() + "]")
    except ValueError:
        return False
    carried = {0: 0, 1: 0}
    for event in events:
        if event["name"] == "ALLREDUCE" and event["ph"] == "X":
            carried[event["pid"]] += event["args"]["tensors"]
    return all(count == tensors for count in carried.values())


hvd.init()
gradients = [torch.ones(1000) for _ in range(8)]
for _ in range(int(sys.argv[1])):
    handles = [hvd.allreduce_async_(gradient, name=f"gradient.{i}") for i, gradient in enumerate(gradients)]
    for handle in handles:
        hvd.synchronize(handle)
if sys.argv[2:]:
    wait_until(lambda: is_written(Path(sys.argv[2]), 8 * int(sys.argv[1])))
    print("written", flush=True)
    signal.pause()
