"""Batch normalization over all ranks. Not available yet."""

import torch


class SyncBatchNorm(torch.nn.modules.batchnorm._BatchNorm):
    """Not available yet: making one raises NotImplementedError."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        raise NotImplementedError("hvd.SyncBatchNorm is not available in this version of Horovod.")
