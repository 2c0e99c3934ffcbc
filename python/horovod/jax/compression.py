"""Compression of gradients for the reduction."""

from typing import Any

from horovod.common.compression import Compressor, NoneCompressor
from horovod.jax._library import jax

__all__ = ["Compression", "Compressor"]


class FP16Compressor(Compressor[Any]):
    """Compression to float16 of floating-point arrays of more than 16 bits: 11 bits of precision, infinite beyond 65504."""

    @staticmethod
    def compress(tensor: Any) -> tuple[Any, Any]:
        """Returns the tensor as float16, and its type."""
        is_wide = jax.numpy.issubdtype(tensor.dtype, jax.numpy.floating) and tensor.dtype.itemsize > 2
        return (tensor.astype(jax.numpy.float16) if is_wide else tensor), tensor.dtype

    @staticmethod
    def decompress(tensor: Any, ctx: Any) -> Any:
        """Returns the tensor with the type `ctx`."""
        return tensor.astype(ctx)


class Compression:
    """The built-in compressions: ``Compression.none`` and ``Compression.fp16``. Scripts may define others."""

    none = NoneCompressor
    fp16 = FP16Compressor
