"""Transformations of optax around a distributed optimizer that decide by, or pass on, the values of one rank.

Such a transformation can't be seen from the optimizer that it calls, but its frame can: when the update is traced, or each time
where it is not jitted.
"""

import inspect
from collections.abc import Iterator
from typing import Any, Optional

# The arguments of an update that are those of a rank's batch.
_OWN = ("value", "grad", "value_fn", "obj_fn", "grad_fn")

_STEPS = (
    "a rank would leave out a step by its own values, and answer the others' with its next one. Put it inside, where all ranks "
    "have the same gradients: hvd.DistributedOptimizer(optax.apply_if_finite(...)) or "
    "hvd.DistributedOptimizer(optax.MultiSteps(...).gradient_transformation())"
)
_VALUES = (
    "it would decide by this rank's batch alone, so the parameters of the ranks would drift apart. Put it inside: "
    "hvd.DistributedOptimizer(optax.chain(...))"
)
_PASSES = (
    "in a step that it leaves out, each rank's parameters would get its own gradients, and drift apart. Use "
    "optax.conditionally_mask, or put it inside: hvd.DistributedOptimizer(optax.conditionally_transform(...))"
)


def check(frame: Any) -> None:
    """Raises ValueError if one of the transformations that call the distributed optimizer decides by this rank's values.

    Args:
      frame: the distributed optimizer's.
    """
    while frame is not None:
        if str(frame.f_globals.get("__name__", "")).startswith("optax."):
            _check_transformation(frame)
        frame = frame.f_back


def _check_transformation(frame: Any) -> None:
    around = _leaves_out_updates(frame)
    if around is not None:
        raise ValueError(f"{around} around hvd.DistributedOptimizer: {_STEPS}.")
    is_conditional = "forward_extra_args" in frame.f_locals  # not one of the branches
    if is_conditional and type(frame.f_locals.get("state")).__name__ == "ConditionallyTransformState":
        raise ValueError(f"optax.conditionally_transform around hvd.DistributedOptimizer: {_PASSES}.")
    if frame.f_globals["__name__"].endswith("._mechanic"):
        raise ValueError(f"optax.contrib.mechanize around hvd.DistributedOptimizer: {_VALUES}.")
    argument = _argument_of_another(frame)
    if argument is not None:
        raise ValueError(
            f"A transformation beside hvd.DistributedOptimizer, as in optax.chain, takes the argument {argument} of update: {_VALUES}."
        )


def _leaves_out_updates(frame: Any) -> Optional[str]:
    """Returns the name of the transformation whose frame this is, if it leaves out steps by the values of gradients or losses."""
    if "max_consecutive_errors" in frame.f_code.co_freevars:
        return "optax.apply_if_finite"
    if frame.f_locals.get("forward_extra_args"):
        return "A conditional transformation with forward_extra_args"
    skips = getattr(frame.f_locals.get("self"), "_should_skip_update_fn", None)
    if skips is not None and not getattr(skips, "__qualname__", "").startswith(
        "MultiSteps."
    ):  # of its own, which never does
        return "optax.MultiSteps with should_skip_update_fn"
    return None


def _argument_of_another(frame: Any) -> Optional[str]:
    """Returns which of the rank's own arguments another transformation takes that this frame's has."""
    given = [name for name in _OWN if name in (frame.f_locals.get("extra_args") or ())]
    held = [frame.f_locals.get(name) for name in frame.f_code.co_freevars]
    return next((name for name in _arguments(held, set()) if name in given), None) if given else None


def _arguments(held: Any, seen: set[int]) -> Iterator[str]:
    """Yields the names of the arguments of transformations' updates within `held`, also of those that they have in turn."""
    if id(held) in seen:
        return
    seen.add(id(held))
    if isinstance(held, (list, tuple, dict)):
        for item in held.values() if isinstance(held, dict) else held:
            yield from _arguments(item, seen)
    elif inspect.isfunction(held) and not hasattr(held, "_hvd_reduce") and not _ignores_arguments(held):
        names = list(inspect.signature(held).parameters)
        if "state" in names:  # an update, not a schedule or another function that it uses
            yield from names
        for cell in held.__closure__ or ():
            try:
                yield from _arguments(cell.cell_contents, seen)
            except ValueError:  # empty
                continue


def _ignores_arguments(update: Any) -> bool:
    return str(update.__qualname__).startswith("with_extra_args_support.")
