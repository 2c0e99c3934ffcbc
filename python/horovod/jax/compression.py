"""Compression of gradients for the time of a reduction."""

from typing import Any

from horovod.common.compression import Compressor, NoneCompressor
from horovod.jax._library import jax

__all__ = ["Compression", "Compressor"]


class FP16Compressor(Compressor):
    """Floating point numbers of more than 16 bits are reduced as float16."""

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
    """The compressions that there are; users may write others."""

    none = NoneCompressor
    fp16 = FP16Compressor
