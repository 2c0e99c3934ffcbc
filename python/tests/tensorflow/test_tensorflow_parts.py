"""Values of a TensorFlowState that hold variables, modules and other objects with a state of their own."""

import pytest
import tensorflow as tf

import horovod.tensorflow as hvd


class Scale(tf.Module):
    def __init__(self, value):
        super().__init__()
        self.factor = tf.Variable(value)


class Count:
    def __init__(self):
        self.steps = 0

    def state_dict(self):
        return {"steps": self.steps}

    def load_state_dict(self, state):
        self.steps = state["steps"]


def test_variables_and_modules_within_values():
    rank = float(hvd.rank())
    weights, average, scales = tf.Variable([rank]), {"w": tf.Variable([rank, rank])}, [Scale(rank), Scale(rank + 1)]
    random, count = tf.random.Generator.from_seed(hvd.rank()), Count()
    count.steps = hvd.rank()
    state = hvd.elastic.TensorFlowState(
        [weights], average=average, scales=scales, random=random, tools=(count,), epoch=0
    )
    state.sync()
    assert (weights.numpy() == 0).all() and (average["w"].numpy() == 0).all()
    assert [float(scale.factor.numpy()) for scale in scales] == [0.0, 1.0] and count.steps == 0
    assert len({float(value) for value in hvd.allgather_object(float(random.normal(())))}) == 1
    average["w"].assign([5.0, 5.0])
    scales[1].factor.assign(5.0)
    count.steps = 5
    state.commit()
    drawn = float(random.normal(()))
    average["w"].assign([9.0, 9.0])
    scales[1].factor.assign(9.0)
    count.steps = 9
    state.restore()
    assert state.average is average and state.scales is scales and state.random is random
    assert (average["w"].numpy() == 5).all() and float(scales[1].factor.numpy()) == 5.0 and count.steps == 5
    assert float(random.normal(())) == drawn


class Holder:
    def __init__(self, inner):
        self.inner = inner


def test_variable_in_an_unsupported_place():
    with pytest.raises(ValueError, match=r"^TensorFlowState\.holder\.inner is a \w*Variable, of which a copy"):
        hvd.elastic.TensorFlowState([tf.Variable(1.0)], holder=Holder(tf.Variable(1.0)))


@pytest.mark.parametrize("value", [lambda: tf.Variable(1.0), lambda: [Scale(1.0)], lambda: Holder(Count())])
def test_object_state_refuses_values_that_it_can_not_restore(value):
    with pytest.raises(
        ValueError, match=r"^ObjectState\.value.* is a \w+, of which an ObjectState would restore a copy only"
    ):
        hvd.elastic.ObjectState(value=value())
