"""The elastic sampler for torch's data loaders."""

import torch

from horovod.elastic import sampler


class ElasticSampler(sampler.ElasticSampler, torch.utils.data.Sampler[int]):
    __doc__ = sampler.ElasticSampler.__doc__

    @staticmethod
    def _shuffled(length: int, seed: int) -> list[int]:
        generator = torch.Generator("cpu")  # whatever torch's default device is
        generator.manual_seed(seed)
        order: list[int] = torch.randperm(length, generator=generator, device="cpu").tolist()
        return order
