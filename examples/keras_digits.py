"""Handwritten digits, those of scikit-learn, with Keras's fit() on several workers: Keras 2, or Keras 3 on the backend
that KERAS_BACKEND names (tensorflow, jax or torch)."""

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

# Each worker trains on its own part of the first 1500, and tests on its own part of the others.
own = slice(hvd.rank(), 1500 // hvd.size() * hvd.size(), hvd.size())
test = slice(1500 + hvd.rank(), None, hvd.size())

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

callbacks = [
    hvd.callbacks.BroadcastGlobalVariablesCallback(0),
    hvd.callbacks.MetricAverageCallback(),  # before those that use metrics
    hvd.callbacks.LearningRateWarmupCallback(RATE * hvd.size(), warmup_epochs=2),
]
if hvd.rank() == 0:
    callbacks.append(
        keras.callbacks.LambdaCallback(
            on_epoch_end=lambda epoch, logs: print(
                f"epoch {epoch + 1}: test accuracy {100 * logs['val_accuracy']:.1f}%, workers: {hvd.size()}", flush=True
            )
        )
    )

model.fit(
    images[own],
    labels[own],
    batch_size=BATCH,
    epochs=EPOCHS,
    validation_data=(images[test], labels[test]),
    callbacks=callbacks,
    verbose=0,
)
