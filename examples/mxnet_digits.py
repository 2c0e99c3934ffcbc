"""Handwritten digits, those of scikit-learn, with MXNet's gluon on several workers."""

import mxnet as mx
import numpy
from mxnet import gluon
from sklearn.datasets import load_digits

import horovod.mxnet as hvd

EPOCHS, BATCH, RATE = 5, 32, 0.02

hvd.init()
mx.random.seed(hvd.rank())
digits = load_digits()  # 1797 images of 8x8
order = numpy.random.RandomState(0).permutation(len(digits.target))
images = mx.nd.array(digits.images[order, None] / 16)
labels = mx.nd.array(digits.target[order])

# Each worker trains on its own part of the first 1500.
own = slice(hvd.rank(), 1500 // hvd.size() * hvd.size(), hvd.size())
loader = gluon.data.DataLoader(gluon.data.ArrayDataset(images[own], labels[own]), BATCH, shuffle=True)

net = gluon.nn.HybridSequential()
net.add(
    gluon.nn.Conv2D(16, kernel_size=3, activation="relu"),
    gluon.nn.BatchNorm(),
    gluon.nn.Dense(64, activation="relu"),
    gluon.nn.Dense(10),
)
net.initialize(mx.init.Xavier())
net.hybridize()
params = net.collect_params()
hvd.broadcast_parameters(params, root_rank=0)
trainer = hvd.DistributedTrainer(params, "sgd", {"learning_rate": RATE * hvd.size(), "momentum": 0.9})
loss_of = gluon.loss.SoftmaxCrossEntropyLoss()

for epoch in range(1, EPOCHS + 1):
    for data, target in loader:
        with mx.autograd.record():
            loss = loss_of(net(data), target)
        loss.backward()
        trainer.step(BATCH)  # of one worker; the gradients are averages
    accuracy = (net(images[1500:]).argmax(axis=1) == labels[1500:]).mean().asscalar()
    if hvd.rank() == 0:
        print(f"epoch {epoch}: test accuracy {100 * accuracy:.1f}%, workers: {hvd.size()}", flush=True)
