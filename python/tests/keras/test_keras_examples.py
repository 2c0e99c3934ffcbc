"""examples/keras_digits.py and keras_elastic_digits.py, on these ranks."""

import pathlib
import re
import runpy

import pytest

import kerases

EXAMPLES = pathlib.Path(__file__).resolve().parents[3] / "examples"


@pytest.mark.parametrize("name", ["keras_digits.py", "keras_elastic_digits.py"])
def test_example_learns_the_same_on_all_ranks(name, capsys):
    model = runpy.run_path(str(EXAMPLES / name))["model"]
    printed = re.findall(r"epoch 5: test accuracy ([\d.]+)%, workers: (\d+)", capsys.readouterr().out)
    assert len(printed) == (kerases.hvd.rank() == 0)
    assert all(float(accuracy) > 90 and int(workers) == kerases.hvd.size() for accuracy, workers in printed)
    kerases.assert_alike_on_all_ranks(model.get_weights())
