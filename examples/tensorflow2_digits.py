"""Handwritten digits, those of scikit-learn, with TensorFlow 2 and a custom training loop on several workers."""

import numpy
import tensorflow as tf
from sklearn.datasets import load_digits

import horovod.tensorflow as hvd

EPOCHS, BATCH, RATE = 5, 32, 1e-3

hvd.init()
gpus = tf.config.list_physical_devices("GPU")
if gpus:
    tf.config.set_visible_devices(gpus[hvd.local_rank()], "GPU")

digits = load_digits()  # 1797 images of 8x8
order = numpy.random.RandomState(0).permutation(len(digits.target))
images = (digits.images[order, :, :, None] / 16).astype("float32")
labels = digits.target[order]

# Each worker trains on its own part of the first 1500.
own = slice(hvd.rank(), 1500 // hvd.size() * hvd.size(), hvd.size())
batches = tf.data.Dataset.from_tensor_slices((images[own], labels[own])).shuffle(1500).batch(BATCH, drop_remainder=True)

model = tf.keras.Sequential(
    [
        tf.keras.layers.Conv2D(16, 3, activation="relu"),
        tf.keras.layers.Flatten(),
        tf.keras.layers.Dense(64, activation="relu"),
        tf.keras.layers.Dense(10),
    ]
)
model.build((None, 8, 8, 1))
loss_of = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
optimizer = tf.keras.optimizers.Adam(RATE * hvd.size())
hvd.broadcast_variables(model.variables, root_rank=0)  # an optimizer that has not stepped yet is the same everywhere


@tf.function
def train_step(x, y):
    with tf.GradientTape() as tape:
        loss = loss_of(y, model(x, training=True))
    tape = hvd.DistributedGradientTape(tape)
    gradients = tape.gradient(loss, model.trainable_variables)  # the averages of all workers' gradients
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))


for epoch in range(1, EPOCHS + 1):
    for x, y in batches:
        train_step(x, y)
    if hvd.rank() == 0:
        accuracy = (model(images[1500:]).numpy().argmax(-1) == labels[1500:]).mean()
        print(f"epoch {epoch}: test accuracy {100 * accuracy:.1f}%, workers: {hvd.size()}", flush=True)
