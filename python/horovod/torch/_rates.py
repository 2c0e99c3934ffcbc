"""The learning rates of an optimizer's step, which the ranks compare: with different ones their parameters would drift apart."""

import zlib
from collections.abc import Iterable
from typing import Any, Union

import torch

from horovod.common.exceptions import HorovodRequestError

_BYTES = 4
_LARGEST = 255

_joins = 0  # the calls of hvd.join()


def forget() -> None:
    """Makes all optimizers forget the rates of their last steps, which may be different ones: after hvd.join()."""
    global _joins
    _joins += 1


class Rates:
    """The learning rates of a rank's last step.

    `digest` has a checksum and its complement, or only zeros if the rank has not stepped in this world, or since hvd.join(). The byte by byte maximum
    over the ranks is a checksum and its complement again, unless two ranks have different ones.
    """

    def __init__(self) -> None:
        self._rates: list[Union[float, str]] = []
        self._digest = bytes(2 * _BYTES)
        self._joins = _joins

    @property
    def digest(self) -> bytes:
        return self._digest if self._joins == _joins else bytes(2 * _BYTES)

    def note(self, groups: Iterable[dict[str, Any]]) -> None:
        """Takes the rates of a step with these parameter groups."""
        self._joins = _joins
        rates = [_number(group.get("lr")) for group in groups]
        if rates == self._rates:
            return
        # Machines of other kinds may compute a schedule with another last bit.
        text = ",".join(rate if isinstance(rate, str) else f"{rate:.4e}" for rate in rates)
        checksum = zlib.crc32(text.encode()).to_bytes(_BYTES, "little")
        self._rates, self._digest = rates, checksum + bytes(_LARGEST - byte for byte in checksum)

    def check(self, largest: bytes) -> None:
        """Raises HorovodRequestError if `largest`, the maximum of the ranks' digests, shows that their rates differ."""
        if any(byte + complement > _LARGEST for byte, complement in zip(largest, largest[_BYTES:])):
            raise HorovodRequestError(
                "The ranks' optimizers have stepped with different learning rates, so their parameters drift apart; this rank's "
                f"were {', '.join(map(str, self._rates)) or 'not noted'}. Step schedulers on all ranks alike: give "
                "ReduceLROnPlateau hvd.allreduce(loss), not this rank's loss."
            )


def _number(rate: object) -> Union[float, str]:
    """Returns a rate as a number; a text if it is none, or on a device, where reading it would wait."""
    if isinstance(rate, torch.Tensor):
        return rate.item() if rate.device.type == "cpu" and rate.numel() == 1 else "tensor"
    return float(rate) if isinstance(rate, (int, float)) else type(rate).__name__
