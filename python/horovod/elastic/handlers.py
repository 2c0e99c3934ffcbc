"""Handlers, which save, restore and synchronize one kind of value in a state."""

from collections.abc import Iterable
from typing import Any

from horovod.common import ops
from horovod.common.basics import rank
from horovod.elastic.stream import broadcast_tree
from horovod.elastic.tree_store import PlacedTree
from horovod.elastic.trees import Trees


class UnlikeError(ValueError):
    """A value differs in kind from the value that it is to replace."""


class StateHandler:
    """Saves, restores and synchronizes one value. There is a subclass for each kind of value.

    Args:
      value: the value.
    """

    #: Whether :meth:`set_value` replaces the last save. It has to if the next value may be such that
    #: a save of the one before can't be restored into it, as with another model.
    saves_new_value = True
    #: Whether values of the kind can't be changed in place. Within lists, tuples and dicts they are then
    #: copied like plain values.
    by_value = False

    def __init__(self, value: Any) -> None:
        self.value = value

    def save(self) -> None:
        """Copies the value's state."""
        raise NotImplementedError

    def restore(self) -> None:
        """Gives the value the state that it had at the last save."""
        raise NotImplementedError

    def sync(self) -> None:
        """Gives all ranks' values the state of rank 0's value."""
        raise NotImplementedError

    def reset(self) -> None:
        """Is called in a new world, before the value is used there."""

    def open_group(self) -> str:
        """Returns what has made the value accumulate gradients that are not reduced yet, for a message; "": it has none."""
        return ""

    def replicated(self, tree: Any) -> "Iterable[tuple[str, str, Any]]":
        """Returns the tensors of a state dict of this value that ranks may hold in common, so that a difference is a fault. No buffers,
        random states and other values that differ rightly.

        Returns:
          For each tensor: its kind, for people; its place below the value, such as ".0.weight"; and itself.
        """
        return ()

    def set_value(self, value: Any) -> None:
        """Replaces the value.

        Args:
          value: the new value.

        Raises:
          UnlikeError: this handler can't handle the value.
        """
        self.value = value
        if self.saves_new_value:
            self.save()


class StateDictHandler(StateHandler):
    """Handler of values that have state_dict and load_state_dict.

    Copies are in host memory. Two copies are used in turn, so that an interrupted copy leaves the one before intact, and no
    memory is allocated at each save. Copies for commits are in the store, if there is one. A framework's subclass sets
    `trees`.
    """

    trees: Trees

    def __init__(self, value: Any) -> None:
        super().__init__(value)
        self._saved: Any = None
        self._spare: Any = None
        self.save()

    def save(self) -> None:
        self.install(self.copied())

    def restore(self) -> None:
        self.load(self.saved())

    def sync(self) -> None:
        ops.check_ready()
        tree = broadcast_tree(self.trees, self.own_tensors(), 0, "horovod.state")
        if rank() != 0:
            self.take(tree)
        else:
            self.given()

    def copied(self) -> Any:
        """Returns a copy of the current state dict. It becomes a save by :meth:`install`."""
        return self.trees.copied(self.state_dict(), self._spare)

    def state_dict(self) -> Any:
        """Returns the state dict that :meth:`copied` copies."""
        return self.value.state_dict()

    def install(self, copied: Any, busy: Iterable[Any] = ()) -> None:
        """Makes `copied` the last save. The memory of the previous save is reused, unless it is one of `busy`."""
        before, self._saved = self._saved, copied
        is_busy = any(before is tree for tree in busy)
        in_store = isinstance(before, PlacedTree) or isinstance(copied, PlacedTree)
        self._spare = None if is_busy or in_store else before

    def drop_saves(self) -> None:
        """Frees the copies, for an owner that keeps what :meth:`state_dict` returns."""
        self._saved = self._spare = None

    def saved(self) -> Any:
        """Returns the last save, which must not be changed."""
        return self._saved.tree() if isinstance(self._saved, PlacedTree) else self._saved

    def load(self, saved: Any) -> None:
        """Gives the value the state `saved`, which is not changed."""
        # A copy, because some load_state_dict keep their argument.
        self.value.load_state_dict(self.trees.copied(saved))

    def own_tensors(self) -> Any:
        """Returns a state dict with the tensors of the value that may be overwritten for :meth:`take`."""
        return self.value.state_dict()

    def take(self, state: Any) -> None:
        """Gives the value the state `state`, whose tensors it may keep."""
        self.value.load_state_dict(state)

    def given(self) -> None:
        """Is called on rank 0, whose value already has the state that the other ranks :meth:`take`."""


class SamplerStateHandler(StateDictHandler):
    """Handler of samplers and streams, which have reset() in addition to their state dict."""

    def reset(self) -> None:
        self.value.reset()

    def given(self) -> None:
        self.value.reset()  # as on the other ranks, which load that state
