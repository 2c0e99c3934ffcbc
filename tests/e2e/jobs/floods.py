"""Trains, and writes more between two commits than all buffers hold.

floods.py FOLDER
"""

import os
import sys
from pathlib import Path

import numpy as np

import horovod.numpy as hvd

folder = Path(sys.argv[1])
FLOOD = 64 << 20  # bytes


def flood():
    (folder / f"floods{hvd.rank()}").touch()
    text = b"x" * 1023 + b"\n"
    for _ in range(FLOOD // len(text)):
        os.write(1, text)


hvd.init()
state = hvd.elastic.State(step=0, checkpoint_dir=str(folder / "checkpoints"), checkpoint_every=1000)


@hvd.elastic.run
def train(state):
    while state.step < 100_000:
        hvd.allreduce(np.ones(1, np.float32), name="step")
        if state.step == 5:
            flood()
        state.step += 1
        state.commit()


train(state)
