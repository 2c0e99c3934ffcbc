"""examples/mxnet_digits.py, on these ranks."""

import pathlib
import re
import runpy

import numpy

import horovod.mxnet as hvd

EXAMPLE = pathlib.Path(__file__).resolve().parents[3] / "examples" / "mxnet_digits.py"


def test_example_learns_the_same_on_all_ranks(capsys):
    params = runpy.run_path(str(EXAMPLE))["params"]
    printed = re.findall(r"epoch 5: test accuracy ([\d.]+)%", capsys.readouterr().out)
    assert len(printed) == (hvd.rank() == 0)
    assert all(float(accuracy) > 95 for accuracy in printed)
    trained = [param.data() for param in params.values() if param.grad_req != "null"]
    assert len(trained) == 8
    for weight in trained:
        assert numpy.array_equal(hvd.broadcast(weight, 0).asnumpy(), weight.asnumpy())
