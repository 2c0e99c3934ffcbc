"""What elastic_train.py trains with --framework torch: a model, and DistributedOptimizer."""

import torch

import horovod.torch as hvd

State = hvd.elastic.TorchState


class Samples(torch.utils.data.Dataset):
    def __init__(self, count):
        self._count = count

    def __len__(self):
        return self._count

    def __getitem__(self, index):
        generator = torch.Generator().manual_seed(index)
        return index, torch.randn(16, generator=generator), index % 4


class Training:
    """After hvd.init()."""

    def __init__(self, samples, batch, width):
        torch.manual_seed(1 + hvd.rank())
        self._model = torch.nn.Sequential(torch.nn.Linear(16, width), torch.nn.ReLU(), torch.nn.Linear(width, 4))
        optimizer = torch.optim.SGD(self._model.parameters(), lr=0.01, momentum=0.9)
        self._optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=self._model.named_parameters())
        self._dataset = Samples(samples)
        self._batch = batch
        self.sampler = hvd.elastic.ElasticSampler(self._dataset, shuffle=True, seed=7)

    def values(self):
        """What the state holds of it, by name."""
        return {"model": self._model, "optimizer": self._optimizer, "sampler": self.sampler}

    def batches(self, sampler):
        """Yields (numbers of the samples, what step() takes)."""
        for samples, *batch in torch.utils.data.DataLoader(self._dataset, batch_size=self._batch, sampler=sampler):
            yield samples.tolist(), batch

    def step(self, batch):
        inputs, labels = batch
        self._optimizer.zero_grad()
        torch.nn.functional.cross_entropy(self._model(inputs), labels).backward()
        self._optimizer.step()

    def set_learning_rate(self, rate):
        for group in self._optimizer.param_groups:
            group.update(lr=rate)

    def weights(self):
        """Arrays."""
        return [parameter.detach().numpy() for parameter in self._model.parameters()]

    def momenta(self):
        """Arrays; none before the first step."""
        states = (self._optimizer.state.get(parameter, {}) for parameter in self._model.parameters())
        buffers = (state.get("momentum_buffer") for state in states)
        return [buffer.numpy() for buffer in buffers if buffer is not None]


def any_rank(flag):
    """Whether it is set on any rank: alike on all of them."""
    return hvd.allreduce(torch.tensor([float(flag)]), name="any_rank").item() > 0
