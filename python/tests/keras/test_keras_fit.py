"""fit() on the ranks' parts of the batches equals fit() of one process on the joined batches."""

import numpy
import pytest

from kerases import (
    BACKEND,
    BATCH,
    JIT,
    KINDS,
    NAME,
    assert_alike_on_all_ranks,
    assert_weights,
    batches,
    fit_together,
    hvd,
    keras,
    optimizers,
    sgd,
    weights_alone,
)

# torch.compile takes minutes of a core; horovod.torch has tests of it.
JITS = [False, "auto"] if BACKEND == "torch" else [False, True, "auto"]
if NAME == "keras2":
    JITS.remove("auto")


@pytest.mark.parametrize("jit", JITS)
@pytest.mark.parametrize("kind", KINDS)
def test_fit_equals_one_process_on_the_joined_batches(kind, jit):
    model = fit_together(hvd.DistributedOptimizer(sgd(kind)), jit)
    assert_weights(model, weights_alone(kind, jit))
    assert_alike_on_all_ranks(model.get_weights())


@pytest.mark.parametrize("kind", KINDS)
def test_with_adam_whose_slots_are_equal_too(kind):
    together = fit_together(hvd.DistributedOptimizer(optimizers(kind).Adam(0.01)))
    assert_weights(together, weights_alone(kind, name="Adam", learning_rate=0.01))


@pytest.mark.parametrize("averages", [False, True])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("jit", [False] if BACKEND == "torch" else sorted({JIT, True}))
def test_accumulation_reduces_the_sum_of_passes(kind, jit, averages):
    optimizer = hvd.DistributedOptimizer(
        sgd(kind, rate=0.01), backward_passes_per_step=2, average_aggregated_gradients=averages
    )
    # The sum of two averages over a batch is twice the average over both.
    alone = weights_alone(kind, joined=2, rate=0.01 if averages else 0.02)
    assert_weights(fit_together(optimizer, jit), alone)


@pytest.mark.parametrize("kind", KINDS)
def test_sum_is_the_average_times_the_size(kind):
    optimizer = hvd.DistributedOptimizer(sgd(kind, rate=0.05 / hvd.size()), op=hvd.Sum)
    assert_weights(fit_together(optimizer), weights_alone(kind))


@pytest.mark.parametrize("options", [{"gradient_predivide_factor": 2.0}, {"groups": 2}, {"num_groups": 3}])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.filterwarnings("ignore:Parameter `num_groups`")
def test_what_does_not_change_the_result(kind, options):
    optimizer = hvd.DistributedOptimizer(sgd(kind), **options)
    assert_weights(fit_together(optimizer), weights_alone(kind))


@pytest.mark.parametrize("kind", KINDS)
def test_groups_of_variables(kind):
    from kerases import fit, model_of

    model = model_of()
    first, second, *_ = model.trainable_variables
    model.compile(hvd.DistributedOptimizer(sgd(kind), groups=[[second, first]]), "mse")
    fit(model, batches()[1], BATCH)
    assert_weights(model, weights_alone(kind))


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_are_clipped_after_they_are_reduced(kind):
    optimizer = hvd.DistributedOptimizer(sgd(kind, global_clipnorm=0.5))
    assert_weights(fit_together(optimizer), weights_alone(kind, global_clipnorm=0.5))


@pytest.mark.parametrize("kind", KINDS)
def test_compression_to_float16(kind):
    optimizer = hvd.DistributedOptimizer(sgd(kind, momentum=0.0), compression=hvd.Compression.fp16)
    model = fit_together(optimizer)
    assert_weights(model, weights_alone(kind, momentum=0.0), rtol=1e-2, atol=1e-2)
    assert model.get_weights()[0].dtype == numpy.float32
    if hvd.size() > 1:
        exact = weights_alone(kind, momentum=0.0)
        assert any((own != other).any() for own, other in zip(model.get_weights(), exact))


@pytest.mark.parametrize("sparse_as_dense", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_embeddings_have_sparse_gradients(kind, sparse_as_dense):
    random = numpy.random.RandomState(0)
    words = random.randint(10, size=(4, hvd.size(), BATCH, 3))
    targets = random.randn(4, hvd.size(), BATCH, 1).astype("float32")

    def trained(optimizer, words, targets, batch):
        keras.utils.set_random_seed(1)
        layers = [keras.layers.Embedding(10, 4), keras.layers.GlobalAveragePooling1D(), keras.layers.Dense(1)]
        model = keras.Sequential(layers)
        model.compile(optimizer, "mse", jit_compile=JIT)
        model.fit(words.reshape(-1, 3), targets.reshape(-1, 1), batch_size=batch, shuffle=False, verbose=0)
        return model

    optimizer = hvd.DistributedOptimizer(sgd(kind, momentum=0.0), sparse_as_dense=sparse_as_dense)
    own = trained(optimizer, words[:, hvd.rank()], targets[:, hvd.rank()], BATCH)
    assert_weights(own, trained(sgd(kind, momentum=0.0), words, targets, BATCH * hvd.size()).get_weights())


@pytest.mark.parametrize("kind", KINDS)
def test_a_train_step_of_the_users_own(kind):
    """Its gradients do not come from a function of the optimizer."""

    class Model(keras.Sequential):
        def train_step(self, data):
            import tensorflow as tf

            inputs, targets = data
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((self(inputs, training=True) - targets) ** 2)
            gradients = tape.gradient(loss, self.trainable_variables)
            self.optimizer.apply_gradients(zip(gradients, self.trainable_variables))
            return {"loss": loss}

    if BACKEND != "tensorflow":
        pytest.skip("a GradientTape is TensorFlow's")
    from kerases import fit, model_of

    model = Model(model_of().layers)
    model.compile(hvd.DistributedOptimizer(sgd(kind)), "mse", jit_compile=JIT)
    fit(model, batches()[1], BATCH)
    assert_weights(model, weights_alone(kind))
