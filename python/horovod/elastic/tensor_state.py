"""States that hold tensors, of any framework."""

import functools
import pickle
from collections.abc import Iterator, Sequence
from typing import Any, Callable, NamedTuple, Optional

from horovod import _ffi
from horovod.common import ops
from horovod.common.basics import rank, size
from horovod.common.class_names import with_article
from horovod.common.objects import broadcast_object
from horovod.common.process_sets import global_process_set
from horovod.common.tensors import Kind, Tensor
from horovod.common.util import is_elastic
from horovod.elastic import commit_store, commits, corruption, open_groups, stream, tree_store
from horovod.elastic.best_checkpoint import Best
from horovod.elastic.checkpoint_folder import Place
from horovod.elastic.checkpoint_options import check_numbers
from horovod.elastic.checkpoints import Checkpoints
from horovod.elastic.commit_protocol import Snapshot
from horovod.elastic.handlers import StateDictHandler, StateHandler, UnlikeError
from horovod.elastic.parts import NoPart, Parts, PartsHandler
from horovod.elastic.pieces import Copy, PiecesOfTree
from horovod.elastic.replicas import Piece
from horovod.elastic.runs import runs
from horovod.elastic.same_folder import compare, locked_place
from horovod.elastic.state import ObjectState
from horovod.elastic.tree_store import Placed, PlacedTree
from horovod.elastic.trees import Trees, put_tensors


class _Head(NamedTuple):
    """What new members receive before the tensors."""

    values: bytes  # pickled
    commit: int
    schema: bytes  # see trees.Taken
    kinds: Sequence[Kind]
    locked: str  # see same_folder.locked_place


class TensorState(ObjectState):
    """State of values of which some have handlers, which save, restore and synchronize them. All other values are plain values
    and are copied deeply. All values are attributes of the state.

    With `checkpoint_dir`, rank 0 also writes commits to files there.

    Args:
      trees: the framework's trees of tensors.
      handler_of: a function that returns a new handler of a value, or None for a plain value.
      checkpoint_dir: the folder for checkpoints, which is created if it is missing, or a URL for fsspec; None: no
        checkpoints.
      checkpoint_every: the minimum number of commits from one checkpoint to the next.
      kwargs: the values, by their names.
      checkpoint_keep: the number of newest checkpoints that are kept.
      checkpoint_best: "min NAME" or "max NAME" of a value; the checkpoint in which it is best is kept, too.

    Raises:
      OSError: `checkpoint_dir` can't be created.
      ImportError: a package that its URL needs is not installed.
      TypeError: it is neither a path nor a URL.
      ValueError: `checkpoint_every` or `checkpoint_keep` is not a positive number, or there is no value as `checkpoint_best` says.
    """

    _handlers: dict[str, StateHandler]  # by the names of their values

    def __init__(
        self,
        trees: Trees,
        handler_of: Callable[[Any], Optional[StateHandler]],
        checkpoint_dir: Optional[str] = None,
        checkpoint_every: int = 1,
        *,
        checkpoint_keep: int = 2,
        checkpoint_best: Optional[str] = None,
        **kwargs: Any,
    ) -> None:
        check_numbers(checkpoint_every, checkpoint_keep)
        best = None if checkpoint_best is None else Best(checkpoint_best)
        if best is not None and best.name not in kwargs:
            raise ValueError(f"checkpoint_best={checkpoint_best!r}: the state has no value {best.name}")
        parts = Parts(trees, handler_of)
        handlers: dict[str, StateHandler] = {}
        for name, value in list(kwargs.items()):
            handler = parts.handler_of(value, f"{type(self).__name__}.{name}")
            if handler is not None:
                handlers[name] = handler
                kwargs.pop(name)
        vars(self)["_handlers"] = handlers
        self._parts = parts
        self._trees = trees
        self._watch = corruption.Watch()
        self._pieces = PiecesOfTree()
        self._checkpoints: Optional[Checkpoints] = None
        self._placed: Optional[Placed] = None  # where the last save lies
        self._offered: Optional[Placed] = None  # where the last checkpoint is written from
        if checkpoint_dir is not None:
            self._checkpoints = Checkpoints(trees, checkpoint_dir, checkpoint_every, checkpoint_keep, best)
        super().__init__(**kwargs)

    def __getattr__(self, name: str) -> Any:
        """Returns a value that has a handler, which may have replaced it."""
        handler = vars(self).get("_handlers", {}).get(name)
        if handler is None:
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
        return handler.value

    def __setattr__(self, name: str, value: Any) -> None:
        # A subclass may set its own attributes before it calls __init__ here.
        handler = vars(self).get("_handlers", {}).get(name)
        if handler is None:
            return super().__setattr__(name, value)
        try:
            handler.set_value(value)
        except UnlikeError as error:
            raise ValueError(f"{type(self).__name__}.{name}: {error}") from None
        if getattr(handler, "saves_new_value", True):
            commits.forget()  # the last save is no longer that of a commit

    def restore(self) -> None:
        for handler in self._handlers.values():
            handler.restore()
        super().restore()

    def sync(self) -> None:
        ops.check_ready()
        self._find_parts()
        if rank() == 0 and (self._begins_run or self._missed_world or commits.newest_id() == self._inherited):
            self._load_earlier()
        placed = self._sync_trees() if size() > 1 else None
        if rank() == 0:
            for handler in self._by_state_dict().values():
                handler.given()
        for other in self._others():
            other.sync()
        if placed is None:
            self.save()
        else:
            self._accept(self._snapshot(placed))

    def on_reset(self) -> None:
        for handler in self._handlers.values():
            if isinstance(handler, StateHandler):
                handler.reset()
        super().on_reset()

    # Parts of values.

    def _find_parts(self) -> None:
        """Gives a handler to each value that has tensors by now. Raises ValueError if one has parts that its copy would copy."""
        plain = self._current()
        within = {name: h.value for name, h in self._handlers.items() if isinstance(h, PartsHandler)}
        kind = type(self).__name__
        paths = {f"{kind}.{name}": name for name in (*plain, *within)}
        for path in self._parts.look_at(
            {path: (plain if name in plain else within)[name] for path, name in paths.items()}
        ):
            name = paths[path]
            if name in plain:
                for part, _ in self._parts.parts_in(plain[name]):
                    raise ValueError(
                        f"{path} has {with_article(part)}, of which a copy would be restored there: give it to the state when you "
                        "make it."
                    )
                self._handle(name, plain[name])

    def _handle(self, name: str, value: object) -> StateHandler:
        """Gives a handler to a value that was plain."""
        handler = PartsHandler(value, self._parts)
        handler.install_plain(self._saved_state.pop(name, None))
        vars(self).pop(name, None)
        self._handlers[name] = handler
        return handler

    def _put(self, name: str, tree: object, put: Callable[[StateDictHandler, object], None]) -> None:
        """Gives a value what is in `tree`. The value may have been plain here, but not where the tree comes from."""
        handler = self._handlers.get(name)
        if handler is None:
            handler = self._handle(name, getattr(self, name))
        if not isinstance(handler, StateDictHandler):
            raise ValueError(f"{name} has a handler of another kind")
        try:
            put(handler, tree)
        except NoPart as error:
            raise ValueError(f"{type(self).__name__}.{name}{error}") from None

    # Saving.

    def _by_state_dict(self) -> dict[str, StateDictHandler]:
        return {name: handler for name, handler in self._handlers.items() if isinstance(handler, StateDictHandler)}

    def _others(self) -> list[StateHandler]:
        """Returns the handlers that are not a StateDictHandler: those that scripts define."""
        return [h for h in self._handlers.values() if not isinstance(h, StateDictHandler)]

    def _take(self, for_commit: bool) -> Snapshot:
        self._find_parts()
        if for_commit:
            placed = self._place()
            if placed is not None:
                copied = None if placed.pieces is None else Copy(placed.pieces, placed.front)
                return self._snapshot(placed)._replace(copied=copied)
        trees = {name: handler.copied() for name, handler in self._by_state_dict().items()}
        return Snapshot(self._deep_copy(self._current()), trees)

    def _snapshot(self, placed: Placed) -> Snapshot:
        trees = {name: PlacedTree(placed, name) for name in self._by_state_dict()}
        return Snapshot(self._deep_copy(self._current()), trees, placed)

    def _place(self) -> Optional[Placed]:
        own = {name: handler.own_tensors() for name, handler in self._by_state_dict().items()}
        pieces_of = None
        if corruption.policy() != corruption.OFF:
            pieces_of = functools.partial(self._pieces.find, parts=self._replicated(own))
        return tree_store.place(self._trees, self, self._current(), own, self._being_written(), pieces_of)

    def _replicated(self, own: dict[str, Any]) -> Iterator[tuple[Piece, Tensor]]:
        """Yields the tensors of these state dicts that ranks may hold in common."""
        for name, handler in self._by_state_dict().items():
            for kind, place, tensor in handler.replicated(own[name]):
                yield Piece(name, kind, name + place), tensor

    def _being_written(self) -> Optional[Placed]:
        """Returns the commit from which a checkpoint is being written, or None. The store must not overwrite it."""
        writing = self._checkpoints is not None and self._checkpoints.in_use()
        return self._offered if writing else None

    def _install(self, snapshot: Snapshot) -> None:
        if self._checkpoints is not None:
            self._checkpoints.forget()
        for other in self._others():
            other.save()
        busy = self._checkpoints.in_use() if self._checkpoints else ()
        plain = dict(snapshot.values)
        for name, handler in self._by_state_dict().items():
            handler.install(snapshot.trees[name] if name in snapshot.trees else plain.pop(name), busy)
        super()._install(snapshot._replace(values=plain))
        self._placed = snapshot.placed if isinstance(snapshot.placed, Placed) else None

    # Synchronizing.

    def _sync_trees(self) -> Optional[Placed]:
        """Gives this rank rank 0's values and state dicts. Returns where they are in the store, if the store keeps them."""
        own = {name: handler.own_tensors() for name, handler in self._by_state_dict().items()}
        return self._send(own) if rank() == 0 else self._receive(own)

    def _send(self, own: dict[str, object]) -> Optional[Placed]:
        taken = self._trees.take_tensors(own)
        number = max(commits.newest_id(), self._loaded_commit)
        head = _Head(
            commit_store.pickled(self._current()),
            number,
            taken.schema,
            taken.kinds,
            locked_place(self._place_of_checkpoints()),
        )
        broadcast_object(tuple(head), 0, "horovod.state.schema")
        _ffi.failpoint("worker.sync.head_sent")
        return self._broadcast(head, taken.tensors)

    def _receive(self, own: dict[str, object]) -> Optional[Placed]:
        head = _Head(*broadcast_object(None, 0, "horovod.state.schema"))
        places = stream.destinations(self._trees, head.schema, head.kinds, own)
        with stream.meanwhile(places.take_memory):
            placed = self._broadcast(head, places.tensors)
        trees = put_tensors(head.schema, places.tensors)
        values = pickle.loads(head.values)
        self._check_names({**values, **trees}, self._by_state_dict())
        for name, tree in trees.items():
            self._put(name, tree, lambda handler, tree: handler.take(tree))
        self._set(values)
        compare(self._place_of_checkpoints(), head.locked)
        return placed

    def _place_of_checkpoints(self) -> Optional[Place]:
        return None if self._checkpoints is None else self._checkpoints.place

    def _broadcast(self, head: _Head, tensors: Sequence[Tensor]) -> Optional[Placed]:
        self._goes_on_from(head.commit)
        compares = self._saves_commit() and self._may_have_placed(head)
        placed = self._placed if compares else self._begin(head)
        append = placed is not None
        stream.broadcast_tensors(self._trees, tensors, 0, "horovod.state", global_process_set, append)
        return None if compares and not tree_store.is_same() else placed

    def _may_have_placed(self, head: _Head) -> bool:
        """Returns whether the last commit may be the one that is sent, as it is on ranks that have restored the state: comparing
        takes less time than copying. Begins the comparison then.
        """
        last = self._placed
        if last is None or last.number != head.commit:
            return False
        return tree_store.compare(last, head.values, head.schema, head.kinds)

    def _begin(self, head: _Head) -> Optional[Placed]:
        if not self._saves_commit():
            return None
        return tree_store.begin(self._trees, self, head.values, head.schema, head.kinds, self._being_written())

    def _load(self, snapshot: Snapshot) -> None:
        for name, tree in snapshot.trees.items():
            tree = tree.tree() if isinstance(tree, PlacedTree) else tree
            self._put(name, tree, lambda handler, tree: handler.load(tree))
        self._set(snapshot.values)

    # Commits of earlier processes.

    def _outlives_job(self) -> bool:
        return self._checkpoints is not None

    def _look_for_later_runs(self) -> None:
        if self._checkpoints is not None:
            runs.adopt(self._checkpoints.past_of_later_run())

    def _final(self) -> bytes:
        self._find_parts()
        own = {name: handler.own_tensors() for name, handler in self._by_state_dict().items()}
        return tree_store.packed(self._trees, self._current(), own)

    def _named_parts(self) -> dict[str, object]:
        return {name: handler.value for name, handler in self._handlers.items()}

    def _inherit(self, left: Optional[commit_store.Placed]) -> None:
        super()._inherit(left)
        # If nobody trains yet, the process that can restore the newest commit must become rank 0,
        # and the daemon must know of that commit.
        nobody_trains = _ffi.is_deferred() and rank() == 0
        if nobody_trains and self._load_checkpoint(self._inherited, alone=False):
            self.save()
            self._inherited = self._loaded_commit
            commits.inherit(self._loaded_commit)

    def _adopt(self, left: commit_store.Placed) -> Snapshot:
        placed = Placed(self._trees, left.address, left.number)
        values, trees = placed.contents()
        self._check_names({**values, **trees}, self._by_state_dict())
        self._load(Snapshot(values, trees))
        trees = {name: PlacedTree(placed, name) for name in trees}
        return Snapshot(placed.values(), trees, placed)

    def _load_earlier(self) -> None:
        """Loads a checkpoint of an earlier job, or of a world that this process was not in, if it is newer than this process's commit."""
        if self._load_checkpoint(commits.newest_id() if self._missed_world else self._inherited):
            self._inherited = 0
        else:
            self._say_where_it_goes_on()

    def _load_checkpoint(self, newer_than: int, alone: bool = True) -> bool:
        if self._checkpoints is None:
            return False
        found = self._checkpoints.load_newest(newer_than, alone)
        if found is None:
            return False
        try:
            self._check_names({**found.values, **found.trees}, self._by_state_dict())
            self._load(Snapshot(found.values, found.trees))
        except (KeyError, RuntimeError, ValueError) as error:
            raise ValueError(f"checkpoint {found.path} does not fit this state: {error}") from error
        self._loaded_commit = self._checkpoints.id_of(found.origin)
        return True

    def _committed(self, number: int) -> None:
        if is_elastic() or self._outlives_job():
            open_groups.warn(self._handlers.values())
        if self._checkpoints is None:
            return
        if rank() != 0:
            return self._checkpoints.leave_to_another()
        values, trees = self._saved()
        if self._checkpoints.wants(number, {**values, **trees}):
            self._offered = self._placed
            self._checkpoints.offer(number, values, trees)
        else:
            self._checkpoints.postpone(number, self._saved)

    def _saved(self) -> tuple[dict[str, object], dict[str, object]]:
        """Returns the values and the state dicts of the last save."""
        trees = {name: handler.saved() for name, handler in self._by_state_dict().items()}
        return self._saved_state, trees
