"""Parts of values: models, optimizers and other objects with a state of their own, and tensors, within lists, tuples and dicts.

A state that copied such a value would restore its copy, not the script's objects. So parts are saved by their state dicts, and
restored in place.
"""

import collections
import contextlib
import functools
import types
from collections.abc import Iterator
from typing import Any, Callable, Optional

from horovod.common.class_names import with_article
from horovod.common.tensors import new
from horovod.elastic import random_states
from horovod.elastic.cursor import JobCursor
from horovod.elastic.handlers import SamplerStateHandler, StateDictHandler, StateHandler
from horovod.elastic.trees import Trees, is_dict

HandlerOf = Callable[[Any], Optional[StateHandler]]

# The key of a part's state dict in the tree of a container.
_PART = "state of a part"

_ATOMS = frozenset((type(None), bool, int, float, complex, str, bytes))
_NO_PLACES = (*_ATOMS, type, range, slice, types.FunctionType, types.BuiltinFunctionType, types.ModuleType)


class NoPart(ValueError):
    """There is no object for a state; the message begins with its place in the value."""


_copied_in_vain: list[Callable[[object], bool]] = []


def refuse_copies(of: Callable[[Any], bool]) -> None:
    """Registers a function that says of which values of a framework a copy is of no use, so that an ObjectState refuses them."""
    _copied_in_vain.append(of)


def has_own_state(value: object) -> bool:
    """Returns whether the value's class has state_dict and load_state_dict, as models, optimizers, schedulers and helpers of many
    packages have.
    """
    kind = type(value)
    return callable(getattr(kind, "state_dict", None)) and callable(getattr(kind, "load_state_dict", None))


class Parts:
    """Finds the parts of a state's values, and keeps a handler of each.

    Args:
      trees: the framework's trees of tensors.
      handler_of: a function that returns a new handler of a value, or None, for the framework's kinds of values.
    """

    def __init__(self, trees: Trees, handler_of: HandlerOf) -> None:
        self.trees = trees
        self._handler_of = handler_of
        # By identity, with the objects, so that no other gets the same: handlers of parts; and values without parts.
        self._known: dict[int, tuple[object, StateHandler]] = {}
        self._plain: dict[int, object] = {}

    def handler_of(self, value: Any, path: str) -> Optional[StateHandler]:
        """Returns a new handler of a value, or None if the value has no parts, and is plain.

        Raises ValueError, whose message begins with the place, if a part can't be in a state.
        """
        if type(value) in _ATOMS:
            return None
        with _naming(path):
            handler = self._new_handler(value)
        if handler is not None:
            return handler
        has_part = any(self.is_tensor(leaf) or self._part_at(place, leaf) for place, leaf in _leaves(value, path))
        return PartsHandler(value, self) if has_part else None

    def _part_at(self, place: str, value: object) -> Optional[StateHandler]:
        with _naming(place):
            return self.part(value)

    def part(self, value: object) -> Optional[StateHandler]:
        """Returns the handler of a part; None if the value is none, or a tensor."""
        if type(value) in _ATOMS or id(value) in self._plain or self.is_tensor(value):
            return None
        known = self._known.get(id(value))
        if known is not None:
            return known[1]
        handler = self._new_handler(value)
        if handler is not None and not getattr(handler, "by_value", False):
            if isinstance(handler, StateDictHandler):
                handler.drop_saves()
            self._known[id(value)] = value, handler
            return handler
        return None

    def is_tensor(self, value: object) -> bool:
        return self.trees.adapter.kind(value) is not None

    def parts_in(self, value: object) -> Iterator[tuple[Any, StateHandler]]:
        """Yields the parts and their handlers."""
        for _, leaf in _leaves(value, ""):
            handler = self.part(leaf)
            if handler is not None:
                yield leaf, handler

    def look_at(self, values: dict[str, Any]) -> list[str]:
        """Returns which of the values, by their paths, have tensors or parts. Forgets the parts of earlier values.

        Raises ValueError if a tensor or a part is in a place where nobody would find it.
        """
        known: dict[int, tuple[object, StateHandler]] = {}
        plain: dict[int, Any] = {}
        have = []
        for path, value in values.items():
            for place, leaf in _leaves(value, path):
                if self.is_tensor(leaf):
                    have.append(path)
                    continue
                handler = self._part_at(place, leaf)
                if handler is None:
                    self._check_places(leaf, place)
                    plain[id(leaf)] = leaf
                elif isinstance(handler, StateDictHandler):
                    known[id(leaf)] = leaf, handler
                    have.append(path)
                else:
                    raise ValueError(misplaced(leaf, place))
        self._known, self._plain = known, plain
        return list(dict.fromkeys(have))

    def _new_handler(self, value: object) -> Optional[StateHandler]:
        handler = self._handler_of(value)
        if handler is None and has_own_state(value):
            return _kind_of_handler(self.trees, isinstance(value, JobCursor))(value)
        return handler or random_states.handler_of(self.trees, value)

    def _check_places(self, value: object, path: str, seen: Optional[set[int]] = None) -> None:
        seen = set() if seen is None else seen
        if isinstance(value, _NO_PLACES) or id(value) in seen or id(value) in self._plain:
            return
        seen.add(id(value))
        for place, inner in _places(value, path):
            if not isinstance(inner, _NO_PLACES):
                is_part = not _is_container(inner) and (self.is_tensor(inner) or self._new_handler(inner) is not None)
                if is_part:
                    raise ValueError(misplaced(inner, place))
                self._check_places(inner, place, seen)


def check_plain(value: object, path: str, seen: Optional[set[int]] = None) -> None:
    """Raises ValueError if `value`, of a state that copies all values, holds something of which a copy is of no use."""
    seen = set() if seen is None else seen
    if isinstance(value, _NO_PLACES) or id(value) in seen:
        return
    seen.add(id(value))
    if has_own_state(value) or any(check(value) for check in _copied_in_vain):
        raise ValueError(
            f"{path} is {with_article(value)}, of which an ObjectState would restore a copy only: use the state of your "
            "framework, such as hvd.elastic.TorchState."
        )
    for place, item in _places(value, path):
        check_plain(item, place, seen)


def misplaced(value: object, path: str) -> str:
    return (
        f"{path} is {with_article(value)}, of which a copy would be restored there: give it to the state as a value of its "
        "own, or in lists, tuples and dicts."
    )


def _is_container(value: object) -> bool:
    return isinstance(value, (dict, list, tuple))


def _items(value: Any, path: str) -> Iterator[tuple[str, object]]:
    pairs = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in pairs:
        yield f"{path}[{key!r}]", item


def _leaves(value: Any, path: str, above: tuple[int, ...] = ()) -> Iterator[tuple[str, object]]:
    """Yields the values within lists, tuples and dicts that may be parts, with their paths."""
    if not _is_container(value):
        yield path, value
        return
    if id(value) in above:  # it contains itself
        return
    above = (*above, id(value))
    for key, item in value.items() if isinstance(value, dict) else enumerate(value):
        if type(item) not in _ATOMS:
            yield from _leaves(item, f"{path}[{key!r}]", above)


def _places(value: object, path: str) -> Iterator[tuple[str, object]]:
    """Yields what an object holds in places that only it knows."""
    if _is_container(value):
        yield from _items(value, path)
    elif isinstance(value, (set, frozenset, collections.deque)):
        for number, item in enumerate(value):
            yield f"{path}[{number}]", item
    elif isinstance(value, types.MethodType):
        yield f"{path}.__self__", value.__self__
    elif isinstance(value, functools.partial):
        for name in ("func", "args", "keywords"):
            yield f"{path}.{name}", getattr(value, name)
    for name, item in list(getattr(value, "__dict__", {}).items()):
        yield f"{path}.{name}", item
    for name in (name for base in type(value).__mro__ for name in _slots(base)):
        try:
            yield f"{path}.{name}", getattr(value, name)
        except (AttributeError, TypeError):  # without a value, or out of reach
            continue


def _slots(kind: type) -> tuple[str, ...]:
    slots = vars(kind).get("__slots__", ())
    return (slots,) if isinstance(slots, str) else tuple(slots)


@contextlib.contextmanager
def _naming(path: str) -> Iterator[None]:
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


@functools.cache
def _kind_of_handler(of_trees: Trees, is_cursor: bool) -> type[StateDictHandler]:
    base = SamplerStateHandler if is_cursor else StateDictHandler

    class Handler(base):  # type: ignore[misc, valid-type]  # one of two
        """Handler of any object that has state_dict and load_state_dict."""

        trees = of_trees

    return Handler


def without_marks(tree: Any) -> Any:
    """Returns the tree of a container as the script would write it: a part's state dict in the place of the part."""
    if is_dict(tree):
        if list(tree) == [_PART]:
            return tree[_PART]
        return type(tree)((key, without_marks(item)) for key, item in tree.items())
    return type(tree)(map(without_marks, tree)) if type(tree) in (list, tuple) else tree


class PartsHandler(StateDictHandler):
    """Handler of a tensor, or of a container with tensors or parts. Restore and sync keep the container and all parts in it; they
    write to tensors in place where these are still of the same shape and dtype. The script may assign any other value; the last
    save stays.
    """

    saves_new_value = False

    def __init__(self, value: Any, parts: Parts) -> None:
        self.trees = parts.trees
        self._parts = parts
        super().__init__(value)

    def state_dict(self) -> Any:
        return self._tree(self.value, lambda handler: handler.state_dict())

    def own_tensors(self) -> Any:
        return self._tree(self.value, lambda handler: handler.own_tensors())

    def load(self, saved: Any) -> None:
        self._load(saved, lambda handler, state: handler.load(state), self.trees.copied)

    def take(self, state: object) -> None:
        self._load(state, lambda handler, part: handler.take(part), lambda value: value)

    def replicated(self, tree: Any) -> Iterator[tuple[str, str, Any]]:
        yield from self._replicated(self.value, tree, "")

    def _replicated(self, value: Any, tree: Any, place: str) -> Iterator[tuple[str, str, Any]]:
        handler = self._parts.part(value)
        if isinstance(handler, StateDictHandler):
            for kind, inner, tensor in handler.replicated(tree[_PART]):
                yield kind, place + inner, tensor
        elif _is_container(value):
            for key, item in value.items() if isinstance(value, dict) else enumerate(value):
                yield from self._replicated(item, tree[key], f"{place}[{key!r}]")

    def given(self) -> None:
        for _, handler in self._parts.parts_in(self.value):
            if isinstance(handler, StateDictHandler):
                handler.given()

    def reset(self) -> None:
        for _, handler in self._parts.parts_in(self.value):
            handler.reset()

    def open_group(self) -> str:
        groups = (handler.open_group() for _, handler in self._parts.parts_in(self.value))
        return next(filter(None, groups), "")

    def install_plain(self, saved: object) -> None:
        """Makes `saved`, the value when it had no parts, the last save."""
        self._saved, self._spare = saved, None

    def _tree(self, value: object, of_part: Callable[[StateDictHandler], object]) -> object:
        if isinstance(value, dict):
            return {key: self._tree(item, of_part) for key, item in value.items()}
        if isinstance(value, (list, tuple)):
            kind = list if isinstance(value, list) else tuple
            return kind(self._tree(item, of_part) for item in value)
        handler = self._parts.part(value)
        return value if not isinstance(handler, StateDictHandler) else {_PART: of_part(handler)}

    def _load(
        self, saved: object, load: Callable[[StateDictHandler, Any], None], copied: Callable[[object], Any]
    ) -> None:
        def put(value: object, left: Any, path: str) -> Any:
            """Returns what takes the place of `value`: itself with the contents of `left`, if that is possible."""
            if is_dict(left) and list(left) == [_PART]:
                handler = self._parts.part(value)
                if not isinstance(handler, StateDictHandler):
                    raise NoPart(f"{path} is no object here that could take the state saved for it")
                load(handler, left[_PART])
                return value
            if is_dict(left) and isinstance(value, dict):
                return put_dict(value, left, path)
            if type(left) is list and isinstance(value, list):
                value[:] = put_items(value, left, path)
                return value
            if type(left) is tuple and isinstance(value, tuple):
                items = put_items(value, left, path)
                return value if _is_same(items, value) else _like(value, items)
            if type(left) in (list, tuple):
                return type(left)(put_items((), left, path))
            if is_dict(left):
                return put_dict({}, left, path)
            return self._put_leaf(value, left, copied)

        def put_items(values: Any, left: Any, path: str) -> list[object]:
            there = [*values[: len(left)], *[None] * (len(left) - len(values))]
            return [put(*pair, f"{path}[{number}]") for number, pair in enumerate(zip(there, left))]

        def put_dict(value: Any, left: Any, path: str) -> Any:
            for key in [key for key in value if key not in left]:
                del value[key]
            for key, item in left.items():
                value[key] = put(value.get(key), item, f"{path}[{key!r}]")
            return value

        self.value = put(self.value, saved, "")

    def _put_leaf(self, value: object, saved: Any, copied: Callable[[object], object]) -> object:
        adapter = self.trees.adapter
        kind = adapter.kind(saved)
        if kind is None or value is saved or adapter.kind(value) is None:
            return copied(saved)
        if adapter.kind(value) == kind:
            try:
                adapter.assign(value, saved)
                return value
            except (RuntimeError, ValueError):  # several elements share memory, or it is read-only
                pass
        fresh = new(adapter, kind, value)
        adapter.assign(fresh, saved)
        return fresh


def _is_same(items: list[object], value: tuple[object, ...]) -> bool:
    def alike(a: object, b: object) -> bool:
        return a is b or (type(a) is type(b) and type(a) in _ATOMS and a == b)

    return len(items) == len(value) and all(map(alike, items, value))


def _like(value: Any, items: list[object]) -> object:
    """Returns a tuple of the type of `value`, which may be a named one."""
    kind = type(value)
    return kind(*items) if hasattr(kind, "_fields") else kind(items)
