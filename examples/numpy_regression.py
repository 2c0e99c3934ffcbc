"""A linear regression with numpy alone. Elastic: it goes on when workers come and go, and each
sample is used once an epoch."""

import numpy

import horovod.numpy as hvd

SAMPLES, FEATURES, BATCH, EPOCHS, RATE = 8192, 16, 32, 5, 0.05

hvd.init()
random = numpy.random.default_rng(0)  # the same data on all workers
inputs = random.normal(size=(SAMPLES, FEATURES))
targets = inputs @ random.normal(size=FEATURES) + 0.1 * random.normal(size=SAMPLES)


@hvd.elastic.run
def train(state):
    while state.epoch < EPOCHS:
        indices = list(state.sampler)
        for first in range(0, len(indices), BATCH):
            batch = indices[first : first + BATCH]
            errors = inputs[batch] @ state.weights - targets[batch]
            gradient = hvd.allreduce(inputs[batch].T @ errors / len(batch), name="gradient")
            state.weights -= RATE * gradient
            state.sampler.record_batch(first // BATCH, BATCH)
            state.commit()
        state.epoch += 1
        state.sampler.set_epoch(state.epoch)
        if hvd.rank() == 0:
            left = numpy.var(inputs @ state.weights - targets) / numpy.var(targets)
            print(f"epoch {state.epoch}: r2 {1 - left:.4f}, workers: {hvd.size()}", flush=True)


train(hvd.elastic.State(weights=numpy.zeros(FEATURES), sampler=hvd.elastic.ElasticSampler(inputs), epoch=0))
