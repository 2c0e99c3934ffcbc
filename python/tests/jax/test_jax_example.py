"""examples/jax_digits.py, on these ranks."""

import pathlib
import re
import runpy

import jax
import numpy

import horovod.jax as hvd

EXAMPLE = pathlib.Path(__file__).resolve().parents[3] / "examples" / "jax_digits.py"


def test_example_learns_the_same_on_all_ranks(capsys):
    params = runpy.run_path(str(EXAMPLE))["params"]
    printed = re.findall(r"epoch 5: test accuracy ([\d.]+)%", capsys.readouterr().out)
    assert len(printed) == (hvd.rank() == 0)
    assert all(float(accuracy) > 95 for accuracy in printed)
    for trained in jax.tree_util.tree_leaves(params):
        assert numpy.array_equal(hvd.broadcast(trained, 0), trained)
