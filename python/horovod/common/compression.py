"""Compression of gradients for the time of a reduction. Each framework adds its casts."""

from collections.abc import Sequence
from typing import Any

from horovod.common.tensors import Tensor, TensorAdapter, check_group


class Compressor:
    """Interface of a compression. Users may write their own."""

    @staticmethod
    def compress(tensor: Tensor) -> tuple[Tensor, Any]:
        """Returns the compressed tensor, and a context for :meth:`decompress`."""
        raise NotImplementedError

    @staticmethod
    def decompress(tensor: Tensor, ctx: Any) -> Tensor:
        """Returns the tensor with the type it had before :meth:`compress`, which returned `ctx`."""
        raise NotImplementedError


class NoneCompressor(Compressor):
    """No compression."""

    @staticmethod
    def compress(tensor: Tensor) -> tuple[Tensor, Any]:
        return tensor, None

    @staticmethod
    def decompress(tensor: Tensor, ctx: Any) -> Tensor:
        return tensor


def compress_group(
    adapter: TensorAdapter, tensors: Sequence[Tensor], compression: type[Compressor]
) -> tuple[list[Tensor], list[Any]]:
    """The compressed tensors of a grouped operation, and the context of each. Raises ValueError as
    :func:`check_group`."""
    pairs = [compression.compress(tensor) for tensor in check_group(adapter, tensors)[0]]
    return [tensor for tensor, _ in pairs], [context for _, context in pairs]


def decompress_group(tensors: Sequence[Tensor], contexts: Sequence[Any], compression: type[Compressor]) -> list[Tensor]:
    """Undoes :func:`compress_group`."""
    return [compression.decompress(tensor, context) for tensor, context in zip(tensors, contexts)]
