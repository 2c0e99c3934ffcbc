"""TensorFlow, which has its own Protobuf and Abseil, before and after horovod.numpy in one process."""

import subprocess
import sys

import pytest

TENSORFLOW = """
import tensorflow
serialized = tensorflow.io.serialize_tensor(tensorflow.ones(2))
assert tensorflow.io.parse_tensor(serialized, tensorflow.float32).numpy().tolist() == [1, 1]
"""
HOROVOD = """
import numpy, horovod.numpy as hvd
hvd.init()
assert hvd.allreduce(numpy.ones(3), op=hvd.Sum).tolist() == [1, 1, 1]
hvd.shutdown()
"""


@pytest.mark.parametrize("parts", [(TENSORFLOW, HOROVOD), (HOROVOD, TENSORFLOW)], ids=["before", "after"])
def test_use_beside_horovod(parts):
    code = "".join([*parts, parts[0]])  # and once more, with both loaded
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
