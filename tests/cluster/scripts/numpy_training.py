"""What elastic_train.py trains with --framework numpy, which is imported in a fifth of the time that torch takes: the same model, its gradients
written out. The interface is that of torch_training.py."""

import numpy

import horovod.numpy as hvd

State = hvd.elastic.State
MOMENTUM = 0.9


class Training:
    def __init__(self, samples, batch, width):
        generator = numpy.random.default_rng(1 + hvd.rank())
        shapes = {"inner": (16, width), "inner_bias": (width,), "outer": (width, 4), "outer_bias": (4,)}
        self._weights = {
            name: generator.uniform(-0.2, 0.2, shape).astype(numpy.float32) for name, shape in shapes.items()
        }
        self._momenta = {f"{name}_momentum": numpy.zeros_like(array) for name, array in self._weights.items()}
        self._rate = numpy.full(1, 0.01, numpy.float32)
        self._batch = batch
        self.sampler = hvd.elastic.ElasticSampler(range(samples), shuffle=True, seed=7)

    def values(self):
        return {**self._weights, **self._momenta, "rate": self._rate, "sampler": self.sampler}

    def batches(self, sampler):
        samples = [int(index) for index in sampler]
        for first in range(0, len(samples), self._batch):
            chosen = samples[first : first + self._batch]
            inputs = numpy.stack([numpy.random.default_rng(index).standard_normal(16) for index in chosen])
            yield chosen, (inputs.astype(numpy.float32), numpy.array([index % 4 for index in chosen]))

    def step(self, batch):
        gradients = hvd.grouped_allreduce(self._gradients(*batch), name="gradients")
        for weights, momentum, gradient in zip(self._weights.values(), self._momenta.values(), gradients):
            momentum *= MOMENTUM
            momentum += gradient
            weights -= self._rate * momentum

    def _gradients(self, inputs, labels):
        """Of the cross entropy, in the order of the weights."""
        w = self._weights
        hidden = numpy.maximum(inputs @ w["inner"] + w["inner_bias"], 0)
        logits = hidden @ w["outer"] + w["outer_bias"]
        error = numpy.exp(logits - logits.max(axis=1, keepdims=True))
        error /= error.sum(axis=1, keepdims=True)
        error[numpy.arange(len(labels)), labels] -= 1
        error /= len(labels)
        back = (error @ w["outer"].T) * (hidden > 0)
        return [inputs.T @ back, back.sum(axis=0), hidden.T @ error, error.sum(axis=0)]

    def set_learning_rate(self, rate):
        self._rate[:] = rate

    def weights(self):
        return list(self._weights.values())

    def momenta(self):
        return list(self._momenta.values())


def any_rank(flag):
    return hvd.allreduce(numpy.array([float(flag)]), name="any_rank")[0] > 0
