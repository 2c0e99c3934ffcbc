"""Handlers of the random generators of numpy and of Python's random module in a state."""

import copy
import functools
import random
import sys
from typing import Any, Optional

from horovod.elastic.handlers import StateDictHandler
from horovod.elastic.trees import Trees


def handler_of(trees: Trees, value: object) -> Optional[StateDictHandler]:
    """Returns a new handler of a generator; None for any other value."""
    if isinstance(value, random.Random):
        return _class_of(trees, "getstate", "setstate")(value)
    numpy: Any = sys.modules.get("numpy.random")
    if numpy is None:  # nobody has made one
        return None
    if isinstance(value, numpy.Generator):
        return _class_of(trees)(value)
    return _class_of(trees, "get_state", "set_state")(value) if isinstance(value, numpy.RandomState) else None


@functools.cache
def _class_of(of_trees: Trees, get: str = "", put: str = "") -> type[StateDictHandler]:
    class Handler(StateDictHandler):
        """Handler of a random generator. `get` and `put`: its methods; numpy's newer kind has an attribute instead."""

        trees = of_trees

        def state_dict(self) -> Any:
            return {"random": getattr(self.value, get)() if get else self.value.bit_generator.state}

        own_tensors = state_dict

        def load(self, saved: Any) -> None:
            state = copy.deepcopy(saved["random"])
            if put:
                getattr(self.value, put)(state)
            else:
                self.value.bit_generator.state = state

        take = load  # type: ignore[assignment]  # its argument has another name

    return Handler
