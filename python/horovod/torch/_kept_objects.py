"""The objects of optimizers that others refer to: groups, lists of groups and states stay the same when a state dict is loaded."""

import contextlib
from collections.abc import Iterator
from typing import Any, NamedTuple, Optional

_NAMES = ("param_groups", "state")


class _Held(NamedTuple):
    """What an optimizer has; None stands for what is no list or no dict."""

    groups: Optional[list[Any]]
    members: list[Optional[dict[str, Any]]]  # of `groups`
    state: Optional[dict[Any, Any]]

    @classmethod
    def of(cls, optimizer: Any) -> "_Held":
        groups, state = (getattr(optimizer, name, None) for name in _NAMES)
        groups = groups if isinstance(groups, list) else None
        return cls(groups, list(map(_dict_or_none, groups or ())), _dict_or_none(state))

    def objects(self) -> list[Any]:
        return [self.groups, *self.members, self.state]


def _dict_or_none(value: Any) -> Optional[dict[Any, object]]:
    return value if isinstance(value, dict) else None


def with_inner(optimizer: object) -> list[Any]:
    """Returns the optimizer and those that it has in its attributes, also in lists and dicts there; the outer ones first."""
    found: dict[int, Any] = {}
    waiting = [optimizer]
    for each in waiting:
        if id(each) not in found:
            found[id(each)] = each
            passed = (*_NAMES, *vars(each).get("_ours", ()))  # the latter: a distributed optimizer's own attributes
            for name, value in vars(each).items():
                if name not in passed:
                    waiting += filter(_is_optimizer, [value, *_parts(value)])
    return list(found.values())


@contextlib.contextmanager
def same_groups_and_state(optimizer: Any) -> Iterator[None]:
    """Within this the optimizer, and any that it is made around, may replace their groups and state. Afterwards they have the objects
    that they had before, with the new contents, because others refer to them: schedulers, scripts, a wrapper. What was one object
    in several optimizers is one again.
    """
    before = [(each, _Held.of(each)) for each in with_inner(optimizer)]
    yield
    exchange = _Exchange([held for _, held in before])
    for each, held in before:
        exchange.note(held, _Held.of(each))
    exchange.fill()
    for each in with_inner(optimizer):
        exchange.put_back(each)


def _parts(value: Any) -> list[object]:
    if isinstance(value, dict):
        return list(value.values())
    return list(value) if isinstance(value, (list, tuple)) else []


def _is_optimizer(value: object) -> bool:
    if isinstance(value, type) or not hasattr(value, "__dict__"):
        return False
    # Not isinstance: optimizers of other packages need not derive from torch's. Models may have a method of that name.
    has_groups = isinstance(vars(value).get("param_groups"), list)
    return has_groups or isinstance(getattr(type(value), "param_groups", None), property)


class _Exchange:
    """New objects for each of which there is an old one that stays."""

    def __init__(self, before: list[_Held]) -> None:
        self._stay = {id(each) for held in before for each in held.objects()}  # old objects
        self._old: dict[int, tuple[object, object]] = {}  # a new object and the old one, by the id of the new one
        self._new: dict[int, tuple[Any, list[Any]]] = {}  # an old object and the new ones, by the id of the old one

    def note(self, old: _Held, new: _Held) -> None:
        """Takes what an optimizer had and has. If optimizers that had different objects share one now, that of the first stays."""
        pairs = [*zip(old.members, new.members), (old.state, new.state), (old.groups, new.groups)]
        for before, after in pairs:
            if before is not None and after is not None and id(after) not in self._stay:
                self._old.setdefault(id(after), (after, before))
                self._new.setdefault(id(before), (before, []))[1].append(after)

    def fill(self) -> None:
        """Gives the old objects the contents of the new ones."""
        for old, new in self._new.values():
            if isinstance(old, list):
                old[:] = map(self._kept, new[0])
            else:
                old.clear()
                for each in new:
                    _add(old, each)

    def put_back(self, optimizer: object) -> None:
        """Replaces new objects in the attributes of `optimizer`, also those in lists and dicts there, by the old ones."""
        own = vars(optimizer)
        for name, value in list(own.items()):
            own[name] = self._kept(value)
            if name not in _NAMES and type(value) is list:
                value[:] = map(self._kept, value)
            elif name not in _NAMES and type(value) is dict:
                value.update({key: self._kept(part) for key, part in value.items()})

    def _kept(self, value: Any) -> Any:
        return self._old[id(value)][1] if id(value) in self._old else value


def _add(old: dict[object, object], new: dict[object, Any]) -> None:
    """Adds `new`, a state or a group. The parts of a parameter's state that two optimizers share may come from both."""
    for key, value in new.items():
        present = old.setdefault(key, value)
        if isinstance(present, dict) and isinstance(value, dict):
            present.update(value)
        else:
            old[key] = value
