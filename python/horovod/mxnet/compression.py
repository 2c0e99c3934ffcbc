"""Compression of gradients for the reduction."""

from typing import Any

import numpy
from mxnet.ndarray import NDArray as Array

from horovod.common.compression import Compressor as Compressor
from horovod.common.compression import NoneCompressor as NoneCompressor


class FP16Compressor(Compressor[Array]):
    """Compression to float16 of float32 and float64 arrays: 11 bits of precision, infinite beyond 65504."""

    @staticmethod
    def compress(tensor: Array) -> tuple[Array, Any]:
        is_larger = tensor.dtype in (numpy.float32, numpy.float64)
        return (tensor.astype("float16"), tensor.dtype) if is_larger else (tensor, None)

    @staticmethod
    def decompress(tensor: Array, ctx: Any) -> Array:
        return tensor if ctx is None else tensor.astype(ctx)


class Compression:
    """The built-in compressions: ``Compression.none`` and ``Compression.fp16``."""

    none = NoneCompressor
    fp16 = FP16Compressor
