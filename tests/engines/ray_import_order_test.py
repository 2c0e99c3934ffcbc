"""Packages with their own gRPC, Protobuf or Abseil, used before and after Horovod in one process, with an allreduce in a world of one."""

import subprocess
import sys

import pytest

OTHERS = {
    "grpcio": """
import grpc
from concurrent import futures
server = grpc.server(futures.ThreadPoolExecutor(1))
port = server.add_insecure_port("127.0.0.1:0")
server.start()
channel = grpc.insecure_channel(f"127.0.0.1:{port}")
grpc.channel_ready_future(channel).result(60)
channel.close()
server.stop(None)
""",
    # In Arrow's own memory: its threads may release a Python file after the end of the interpreter, which aborts the process.
    "pyarrow": """
import pyarrow, pyarrow.parquet
out = pyarrow.BufferOutputStream()
pyarrow.parquet.write_table(pyarrow.table({"a": [1, 2]}), out)
assert pyarrow.parquet.read_table(pyarrow.BufferReader(out.getvalue()))["a"].to_pylist() == [1, 2]
""",
    "ray": "import ray._raylet\nassert ray._raylet.ObjectID.from_random().binary()\n",
}
HOROVOD = """
import numpy, {framework}, horovod.{framework} as hvd
hvd.init()
assert hvd.allreduce({framework}.ones(3), op=hvd.Sum).tolist() == [1, 1, 1]
hvd.shutdown()
"""


@pytest.mark.parametrize("framework", ["numpy", "torch"])
@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("is_first", [True, False], ids=["before", "after"])
def test_use_beside_horovod(other, framework, is_first):
    parts = [OTHERS[other], HOROVOD.format(framework=framework)]
    if not is_first:
        parts.reverse()
    code = "".join([*parts, parts[0]])  # and once more, with both loaded
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
