"""Compression of gradients for the time of a reduction."""

from typing import Any

import numpy
from mxnet.ndarray import NDArray as Array

from horovod.common.compression import Compressor as Compressor
from horovod.common.compression import NoneCompressor as NoneCompressor


class FP16Compressor(Compressor):
    """Floating point numbers as float16: 11 bits of precision, infinite beyond 65504; others as they are."""

    @staticmethod
    def compress(tensor: Array) -> tuple[Array, Any]:
        is_larger = tensor.dtype in (numpy.float32, numpy.float64)
        return (tensor.astype("float16"), tensor.dtype) if is_larger else (tensor, None)

    @staticmethod
    def decompress(tensor: Array, ctx: Any) -> Array:
        return tensor if ctx is None else tensor.astype(ctx)


class Compression:
    """The compressions there are: ``Compression.none`` and ``Compression.fp16``."""

    none = NoneCompressor
    fp16 = FP16Compressor
