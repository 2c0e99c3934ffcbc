"""Reading of checkpoints outside of a training: for evaluation, for export, for a look."""

import os
from collections.abc import Sequence
from typing import Any, Union

from horovod.elastic import checkpoint_url
from horovod.elastic.checkpoint_file import Checkpoint, Damaged
from horovod.elastic.messages import say
from horovod.elastic.parts import without_marks
from horovod.elastic.trees import Trees

_SUFFIX = ".hvd"


def newest_in(trees: Trees, path: Union[str, "os.PathLike[str]"]) -> Checkpoint:
    """Returns the checkpoint in a file, or the newest complete one in a folder or below a URL. Nothing is locked or changed.

    Raises:
      FileNotFoundError: there is none.
      ValueError: the file is damaged, or no checkpoint; or no checkpoint in the folder is complete.
      PermissionError: the folder belongs to another user, in one that all users may write to.
    """
    text = os.fspath(path)
    if not text.endswith(_SUFFIX) and os.path.isfile(text):
        raise ValueError(f"{text} is no checkpoint: their names end with {_SUFFIX}")
    folder, name = os.path.split(text) if text.endswith(_SUFFIX) else (text, "")
    place = checkpoint_url.place_of(folder or ".")
    place.open()
    names: Sequence[str] = [name] if name else [found.name for found in place.found()]
    if not names:
        raise FileNotFoundError(f"{text} has no checkpoint")
    damage = []
    for name in names:
        try:
            found = place.read(trees, name)
        except Damaged as error:
            damage.append(f"{place.path_of(name)}: {error}")
        else:
            for line in damage:
                say(f"checkpoint is skipped: {line}")
            return found
    raise ValueError(damage[0])


def values_in(found: Checkpoint) -> dict[str, Any]:
    """Returns the values and state dicts of a checkpoint, by the names that they have in the state."""
    return {**found.values, **{name: without_marks(tree) for name, tree in found.trees.items()}}


def load(trees: Trees, path: Union[str, "os.PathLike[str]"]) -> dict[str, Any]:
    """Returns :func:`values_in` the checkpoint that :func:`newest_in` returns. Raises as that."""
    return values_in(newest_in(trees, path))
