"""Steps with a few gradients, as many as the first argument says. With a second one, the timeline's file, it then says when events of rank 1 are in
there, and goes on without end."""

import sys
import time
from pathlib import Path

import torch

import horovod.torch as hvd

hvd.init()
gradients = [torch.ones(1000) for _ in range(8)]
for _ in range(int(sys.argv[1])):
    handles = [hvd.allreduce_async_(gradient, name=f"gradient.{i}") for i, gradient in enumerate(gradients)]
    for handle in handles:
        hvd.synchronize(handle)
if sys.argv[2:]:
    before = ""
    while True:
        text = Path(sys.argv[2]).read_text()
        if text == before and '"name":"ALLREDUCE","pid":1' in text:
            break  # it has been written, and nothing is being written
        before = text
        time.sleep(0.05)
    print("written", flush=True)
    time.sleep(1000)
