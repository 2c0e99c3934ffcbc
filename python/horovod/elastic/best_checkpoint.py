"""Which commit of a run is the best one, by a number among the state's values."""

import math
import re
from typing import Any, Callable, Optional

from horovod.elastic.runs import runs

_TEXT = re.compile(r"(min|max) ([^\W\d]\w*)")


def best_file(run: int) -> str:
    """Returns the name of the file in which the best checkpoint of a run is kept."""
    return "best.hvd" if run == 1 else f"best-run{run}.hvd"


class Best:
    """The rule, and the best number of each run so far. The thread that trains and the one that writes use it in turn.

    Args:
      text: "min NAME" or "max NAME".

    Raises ValueError for any other text.
    """

    def __init__(self, text: str) -> None:
        match = _TEXT.fullmatch(text) if isinstance(text, str) else None
        if match is None:
            raise ValueError(f"checkpoint_best must be 'min NAME' or 'max NAME' of a value of the state, not {text!r}")
        self.name = match[2]
        self._sign = 1.0 if match[1] == "max" else -1.0
        self._bests: dict[int, float] = {}  # by run, times the sign

    def improves(self, values: dict[str, Any], before: Callable[[int], dict[str, Any]]) -> bool:
        """Returns whether a commit of the present run with these values would be the best one. `before` returns the values of the
        best one that an earlier process kept.
        """
        run = runs.newest()
        score = self._score(values)
        if score is not None and run not in self._bests:
            earlier = self._score(before(run))
            self._bests[run] = -math.inf if earlier is None else earlier
        return score is not None and score > self._bests[run]

    def forget(self) -> None:
        """Forgets the best numbers; another process may keep better ones."""
        self._bests.clear()

    def is_best(self, run: int, values: dict[str, Any]) -> bool:
        """Returns whether a commit with these values is better than the best one that is kept."""
        score = self._score(values)
        return score is not None and score > self._bests.get(run, -math.inf)

    def note(self, run: int, values: dict[str, Any]) -> None:
        """Records the best commit, which is kept now. REQUIRES: :meth:`is_best`."""
        score = self._score(values)
        assert score is not None
        self._bests[run] = score

    def _score(self, values: dict[str, Any]) -> Optional[float]:
        try:
            score = self._sign * float(values[self.name])
        except (KeyError, TypeError, ValueError):  # none was measured yet
            return None
        return None if math.isnan(score) else score
