"""Handwritten digits, those of scikit-learn, with Keras's fit() on several workers that may come and go: Keras 2, or
Keras 3 on the backend that KERAS_BACKEND names (tensorflow, jax or torch)."""

import keras
import numpy
from sklearn.datasets import load_digits

import horovod.keras as hvd

EPOCHS, BATCH, RATE = 5, 32, 1e-3

hvd.init()  # GPUs: docs/keras.md
digits = load_digits()  # 1797 images of 8x8
order = numpy.random.RandomState(0).permutation(len(digits.target))
images = (digits.images[order, :, :, None] / 16).astype("float32")
labels = digits.target[order]

model = keras.Sequential(
    [
        keras.layers.Conv2D(16, 3, activation="relu"),
        keras.layers.Flatten(),
        keras.layers.Dense(64, activation="relu"),
        keras.layers.Dense(10, activation="softmax"),
    ]
)
model.build((None, 8, 8, 1))
optimizer = hvd.DistributedOptimizer(keras.optimizers.Adam(RATE * hvd.size()))
model.compile(optimizer, "sparse_categorical_crossentropy", metrics=["accuracy"])


def print_accuracy(epoch, logs):
    if hvd.rank() == 0:
        accuracy = 100 * logs["val_accuracy"]
        print(f"epoch {epoch + 1}: test accuracy {accuracy:.1f}%, workers: {hvd.size()}", flush=True)


@hvd.elastic.run
def train(state):  # called again after a change of the workers
    # Each worker trains on its own part of the first 1500, in this order: batches done before a change are skipped.
    own = slice(hvd.rank(), 1500 // hvd.size() * hvd.size(), hvd.size())
    test = slice(1500 + hvd.rank(), None, hvd.size())
    model.fit(
        images[own],
        labels[own],
        batch_size=BATCH,
        shuffle=False,
        initial_epoch=state.epoch,
        epochs=EPOCHS,
        validation_data=(images[test], labels[test]),
        callbacks=[
            hvd.callbacks.MetricAverageCallback(),
            keras.callbacks.LambdaCallback(on_epoch_end=print_accuracy),  # before a commit, which may end fit()
            hvd.elastic.UpdateEpochStateCallback(state),
            hvd.elastic.UpdateBatchStateCallback(state),
            hvd.elastic.CommitStateCallback(state, batches_per_commit=4),
        ],
        verbose=0,
    )


def on_reset():
    model.optimizer.learning_rate = RATE * hvd.size()


state = hvd.elastic.KerasState(model, epoch=0, batch=0)
state.register_reset_callbacks([on_reset])
train(state)
