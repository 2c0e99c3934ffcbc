"""The interface of compressions of gradients, and the identity. Each framework adds its casts."""

from collections.abc import Sequence
from typing import Any

from horovod.common.tensors import Tensor, TensorAdapter, check_group


class Compressor:
    """The interface of a compression. Scripts may define their own."""

    @staticmethod
    def compress(tensor: Tensor) -> tuple[Tensor, Any]:
        """Compresses a tensor before the reduction.

        Args:
          tensor: a tensor of the framework.

        Returns:
          The compressed tensor, and a context for :meth:`decompress`.
        """
        raise NotImplementedError

    @staticmethod
    def decompress(tensor: Tensor, ctx: Any) -> Tensor:
        """Undoes :meth:`compress` after the reduction.

        Args:
          tensor: the compressed tensor.
          ctx: the context that :meth:`compress` returned.

        Returns:
          The tensor with the dtype that it had before :meth:`compress`.
        """
        raise NotImplementedError


class NoneCompressor(Compressor):
    """No compression: tensors are left as they are."""

    @staticmethod
    def compress(tensor: Tensor) -> tuple[Tensor, Any]:
        return tensor, None

    @staticmethod
    def decompress(tensor: Tensor, ctx: Any) -> Tensor:
        return tensor


def compress_group(
    adapter: TensorAdapter, tensors: Sequence[Tensor], compression: type[Compressor]
) -> tuple[list[Tensor], list[Any]]:
    """Compresses the tensors of a grouped operation. Returns them, and the context of each. Raises ValueError as
    :func:`check_group`.
    """
    pairs = [compression.compress(tensor) for tensor in check_group(adapter, tensors)[0]]
    return [tensor for tensor, _ in pairs], [context for _, context in pairs]


def decompress_group(tensors: Sequence[Tensor], contexts: Sequence[Any], compression: type[Compressor]) -> list[Tensor]:
    """Undoes :func:`compress_group`."""
    return [compression.decompress(tensor, context) for tensor, context in zip(tensors, contexts)]
