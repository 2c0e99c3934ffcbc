"""examples/tensorflow2_digits.py, on these ranks."""

import pathlib
import re
import runpy

import horovod.tensorflow as hvd

EXAMPLE = pathlib.Path(__file__).resolve().parents[3] / "examples" / "tensorflow2_digits.py"


def test_example_learns_the_same_on_all_ranks(capsys):
    model = runpy.run_path(str(EXAMPLE))["model"]
    printed = re.findall(r"epoch 5: test accuracy ([\d.]+)%", capsys.readouterr().out)
    assert len(printed) == (hvd.rank() == 0)
    assert all(float(accuracy) > 90 for accuracy in printed)
    for trained in model.trainable_variables:
        assert (hvd.broadcast(trained, 0).numpy() == trained.numpy()).all()
