"""The interface of compressions of gradients, and the identity. Each framework adds its casts."""

from collections.abc import Sequence
from typing import Any, Generic

from horovod.common.tensors import T, TensorAdapter, check_group


class Compressor(Generic[T]):
    """The interface of a compression. Scripts may define their own."""

    @staticmethod
    def compress(tensor: T) -> tuple[T, Any]:
        """Compresses a tensor before the reduction.

        Args:
          tensor: a tensor of the framework.

        Returns:
          The compressed tensor, and a context for :meth:`decompress`.
        """
        raise NotImplementedError

    @staticmethod
    def decompress(tensor: T, ctx: Any) -> T:
        """Undoes :meth:`compress` after the reduction.

        Args:
          tensor: the compressed tensor.
          ctx: the context that :meth:`compress` returned.

        Returns:
          The tensor with the dtype that it had before :meth:`compress`.
        """
        raise NotImplementedError


AnyCompressor = type[Compressor[Any]]  # of a framework without types


class NoneCompressor(Compressor[Any]):
    """No compression: tensors are left as they are."""

    @staticmethod
    def compress(tensor: T) -> tuple[T, None]:
        return tensor, None

    @staticmethod
    def decompress(tensor: T, ctx: object) -> T:
        return tensor


def compress_group(
    adapter: TensorAdapter[T], tensors: Sequence[T], compression: type[Compressor[T]]
) -> tuple[list[T], list[Any]]:
    """Compresses the tensors of a grouped operation. Returns them, and the context of each. Raises ValueError as
    :func:`check_group`.
    """
    pairs = [compression.compress(tensor) for tensor in check_group(adapter, tensors)[0]]
    return [tensor for tensor, _ in pairs], [context for _, context in pairs]


def decompress_group(tensors: Sequence[T], contexts: Sequence[object], compression: type[Compressor[T]]) -> list[T]:
    """Undoes :func:`compress_group`."""
    return [compression.decompress(tensor, context) for tensor, context in zip(tensors, contexts)]
