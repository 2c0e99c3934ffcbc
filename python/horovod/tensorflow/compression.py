"""Compression of gradients for the reduction."""

from typing import Any

from horovod.common.compression import Compressor, NoneCompressor
from horovod.tensorflow._library import tf

__all__ = ["Compression", "Compressor", "FP16Compressor", "NoneCompressor"]


class FP16Compressor(Compressor[tf.Tensor]):
    """Compression to float16 of floating-point tensors of more than 16 bits: 11 bits of precision, infinite beyond 65504."""

    @staticmethod
    def compress(tensor: Any) -> tuple[Any, Any]:
        dtype = tensor.dtype
        is_wide = dtype.is_floating and dtype.size > 2
        return (tf.cast(tensor, tf.float16) if is_wide else tensor), dtype

    @staticmethod
    def decompress(tensor: Any, ctx: Any) -> Any:
        return tf.cast(tensor, ctx) if ctx.is_floating else tensor


class Compression:
    """The built-in compressions: ``Compression.none`` and ``Compression.fp16``."""

    none = NoneCompressor
    fp16 = FP16Compressor
