"""Compression of gradients for the reduction."""

from typing import Optional

import torch

from horovod.common.compression import Compressor as Compressor
from horovod.common.compression import NoneCompressor as NoneCompressor


class _CastCompressor(Compressor[torch.Tensor]):
    """Casts floating-point tensors to another floating-point type; tensors of other types are left as they are."""

    _dtype: torch.dtype

    @classmethod
    def compress(cls, tensor: torch.Tensor) -> tuple[torch.Tensor, Optional[torch.dtype]]:
        if tensor.dtype.is_floating_point:
            return tensor.to(cls._dtype), tensor.dtype
        return tensor, None

    @staticmethod
    def decompress(tensor: torch.Tensor, ctx: Optional[torch.dtype]) -> torch.Tensor:
        return tensor if ctx is None else tensor.to(ctx)


class FP16Compressor(_CastCompressor):
    """Compression to float16: 11 bits of precision. Values beyond 65504 become infinite, so sums over ranks may overflow."""

    _dtype = torch.float16


class BF16Compressor(_CastCompressor):
    """Compression to bfloat16: the range of float32, 8 bits of precision."""

    _dtype = torch.bfloat16


class Compression:
    """The built-in compressions: ``Compression.none``, ``Compression.fp16`` and ``Compression.bf16``.

    Example:
      >>> import torch
      >>> compressed, ctx = hvd.Compression.fp16.compress(torch.ones(2))
      >>> compressed.dtype
      torch.float16
      >>> hvd.Compression.fp16.decompress(compressed, ctx).dtype
      torch.float32
    """

    none = NoneCompressor
    fp16 = FP16Compressor
    bf16 = BF16Compressor
