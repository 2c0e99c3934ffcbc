"""Checks of the options by which states write checkpoints."""

import difflib
from collections.abc import Iterable

from horovod.common import _warnings

_NAMES = ("checkpoint_dir", "checkpoint_every", "checkpoint_keep", "checkpoint_best")
_ALIKE = 0.9  # as difflib.SequenceMatcher.ratio: a letter more, less or another one; but not checkpoint_step


def check_numbers(every: object, keep: object) -> None:
    """Raises ValueError if `checkpoint_every` or `checkpoint_keep` is not a positive number."""
    for name, number in (("checkpoint_every", every), ("checkpoint_keep", keep)):
        if not isinstance(number, int) or isinstance(number, bool) or number < 1:
            raise ValueError(f"{name} must be a positive number, not {number!r}")


def warn_of_values(kind: str, names: Iterable[str]) -> None:
    """Warns of values of a state whose names are those of options, or nearly.

    Args:
      kind: the class of the state.
      names: the names of its values.
    """
    for name in names:
        if name in _NAMES:
            _warnings.warn(f"{kind} writes no checkpoints: {name} is a plain value of it")
        else:
            for option in difflib.get_close_matches(name, _NAMES, 1, _ALIKE):
                _warnings.warn(f"{kind} has no option {name}, so this is a value of it; did you mean {option}?")
