"""A benchmark's line of figures, which rank 0 prints."""

import json
import os

import torch

import horovod.torch as hvd


def report(section, **figures):
    """Prints a line of JSON with what was measured, and on what."""
    if hvd.rank() == 0:
        head = {
            "section": section,
            "torch": torch.__version__,
            "workers": hvd.size(),
            "load": round(os.getloadavg()[0], 1),
        }
        print(json.dumps({**head, **figures}), flush=True)
