"""Values of a KerasState that hold models, optimizers, variables and other objects with a state of their own."""

import numpy
import pytest

from kerases import assert_weights, hvd, keras, model_of, sgd

elastic = hvd.elastic


class Average:
    """An average of weights, as scripts keep it."""

    def __init__(self):
        self.values = numpy.zeros(2)

    def state_dict(self):
        return {"values": self.values}

    def load_state_dict(self, state):
        self.values = state["values"].copy()


def built(seed):
    """An optimizer beside a model, with its variables."""
    model, optimizer = model_of(seed), sgd()
    build = getattr(optimizer, "build", None)
    if build is not None:
        build(model.trainable_variables)
    return model, optimizer


def fill(model, value):
    model.set_weights([numpy.full_like(weight, value) for weight in model.get_weights()])


def holds(model, value):
    return all((weight == value).all() for weight in model.get_weights())


def test_models_optimizers_and_helpers_within_values():
    rank = float(hvd.rank())
    model, (generator, beside), (judge, _) = model_of(1), built(2), built(3)
    average, ema, seen = Average(), {"w": numpy.zeros(3)}, [numpy.zeros(1)]
    for each in (model, generator, judge):
        fill(each, rank + 1)
    average.values += rank
    ema["w"] += rank
    state = elastic.KerasState(
        model,
        nets=[generator, judge],
        optimizers=(beside,),
        layer=judge.layers[-1],
        average=average,
        ema=ema,
        seen=seen,
        epoch=0,
    )
    state.sync()
    assert holds(model, 1) and holds(generator, 1) and holds(judge, 1)
    assert (average.values == 0).all() and (ema["w"] == 0).all()
    for each in (model, generator, judge):
        fill(each, 5)
    average.values += 5
    ema["w"] += 5
    seen.append(numpy.ones(2))
    state.commit()
    kept = ema["w"]
    for each in (model, generator, judge):
        fill(each, 9)
    average.values += 9
    ema["w"] += 9
    seen.clear()
    state.restore()
    assert holds(model, 5) and holds(generator, 5) and holds(judge, 5)
    assert state.nets[0] is generator and state.optimizers[0] is beside and state.ema is ema and ema["w"] is kept
    assert (average.values == 5).all() and (kept == 5).all() and state.seen is seen and len(seen) == 2
    assert_weights(judge, judge.get_weights())


def test_variables_beside_the_model():
    if not hasattr(keras, "Variable"):
        pytest.skip("Keras 3")
    counter, seed = keras.Variable(1.0), keras.random.SeedGenerator(7)
    state = elastic.KerasState(model_of(), counter=counter, seeds=[seed])
    before = keras.ops.convert_to_numpy(seed.state.value)
    state.commit()
    counter.assign(5.0)
    keras.random.normal((1,), seed=seed)
    state.restore()
    assert state.counter is counter and float(counter) == 1.0
    assert (keras.ops.convert_to_numpy(seed.state.value) == before).all()


def update(metric, *arguments):
    metric.update_state(*(numpy.array(argument, "float32") for argument in arguments))


def result(metric):
    return float(numpy.asarray(metric.result()))


def test_metrics_beside_the_model():
    mean, within = keras.metrics.Mean(), keras.metrics.MeanSquaredError()
    state = elastic.KerasState(model_of(), mean=mean, metrics={"error": within}, epoch=0)
    rank = float(hvd.rank())
    update(mean, [rank + 1, rank + 3])
    update(within, [rank], [rank + 2])
    state.commit()
    update(mean, [100.0])
    update(within, [0.0], [100.0])
    state.restore()
    assert state.mean is mean and state.metrics["error"] is within
    assert (result(mean), result(within)) == (rank + 2, 4.0)
    update(mean, [rank + 8])  # it counts on from what it was given
    assert result(mean) == rank + 4
    state.sync()
    assert (result(mean), result(within)) == (4.0, 4.0)


def test_metric_is_in_a_checkpoint(tmp_path):
    if hvd.rank() != 0:
        return
    metric = keras.metrics.Mean()
    update(metric, [2.0, 4.0])
    state = elastic.KerasState(model_of(), metric=metric, checkpoint_dir=str(tmp_path))
    values = [array.copy() for array in state._saved()[1]["metric"]]
    assert sorted(float(value) for value in values) == [2.0, 6.0]  # the count and the sum


def test_metric_without_variables_is_refused():
    class Constant(keras.metrics.Metric):
        def update_state(self, *arguments):
            pass

        def result(self):
            return 1.0

    with pytest.raises(
        ValueError, match=r"^KerasState\.metric: Constant has no variables yet: update it once before you give it to"
    ):
        elastic.KerasState(model_of(), metric=Constant())


def test_seeds_of_layers_belong_to_each_rank():
    if not hasattr(keras, "Variable"):
        pytest.skip("Keras 3")
    layer = keras.layers.Dropout(0.5, seed=10 + hvd.rank())
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1), layer])
    state = elastic.KerasState(model)
    state.commit()
    before = keras.ops.convert_to_numpy(layer.seed_generator.state.value)
    model(keras.ops.ones((2, 3)), training=True)
    after = keras.ops.convert_to_numpy(layer.seed_generator.state.value)
    assert (after != before).any()
    state.restore()
    state.sync()
    assert (keras.ops.convert_to_numpy(layer.seed_generator.state.value) == after).all()


class Holder:
    def __init__(self, inner):
        self.inner = inner


def test_model_in_an_unsupported_place():
    with pytest.raises(
        ValueError, match=r"^KerasState\.helper\.inner is a \w+, of which a copy would be restored there"
    ):
        elastic.KerasState(model_of(), helper=Holder(model_of(2)))


def test_model_that_is_not_built():
    with pytest.raises(ValueError, match="has no variables yet: build it before you give it to a state"):
        elastic.KerasState(model_of(), nets=[keras.Sequential([keras.layers.Dense(1)])])


def test_checkpoint_can_be_read(tmp_path):
    model = model_of()
    state = elastic.KerasState(model, nets=[model_of(2)], epoch=3, checkpoint_dir=str(tmp_path / str(hvd.rank())))
    state.commit()
    if hvd.rank() == 0:
        state._checkpoints.wait()
        found = elastic.load_checkpoint(tmp_path / "0")
        assert_weights(model, found["model"])
        assert found["epoch"] == 3 and len(found["nets"][0]) == len(model.get_weights())
