"""Compression of gradients for the time of a reduction."""

from typing import Any

import torch

from horovod.common.compression import Compressor as Compressor
from horovod.common.compression import NoneCompressor as NoneCompressor


class _CastCompressor(Compressor):
    """Floating point numbers as another floating point type; other types as they are."""

    _dtype: torch.dtype

    @classmethod
    def compress(cls, tensor: torch.Tensor) -> tuple[torch.Tensor, Any]:
        if tensor.dtype.is_floating_point:
            return tensor.to(cls._dtype), tensor.dtype
        return tensor, None

    @staticmethod
    def decompress(tensor: torch.Tensor, ctx: Any) -> torch.Tensor:
        return tensor if ctx is None else tensor.to(ctx)


class FP16Compressor(_CastCompressor):
    """As float16: 11 bits of precision; infinite beyond 65504, so sums over ranks may overflow."""

    _dtype = torch.float16


class BF16Compressor(_CastCompressor):
    """As bfloat16: float32's range, 8 bits of precision."""

    _dtype = torch.bfloat16


class Compression:
    """The compressions there are: ``Compression.none``, ``Compression.fp16`` and
    ``Compression.bf16``."""

    none = NoneCompressor
    fp16 = FP16Compressor
    bf16 = BF16Compressor
