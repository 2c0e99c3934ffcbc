"""What workers are given to do, in Ray's store: once for all of them, and opened where its failure can be told."""

from typing import Any, Callable, NamedTuple, Optional

import ray

from horovod.runner._adoption import Refused


class Parcel(NamedTuple):
    """A value that workers have to unpickle. An argument that Ray unpickles fails outside of the actor's methods."""

    references: list[Any]  # one; Ray leaves those in a list alone
    what: str  # it is, for messages

    @classmethod
    def of(cls, value: Any, what: str) -> "Parcel":
        """Raises TypeError for what can't be pickled."""
        try:
            return cls([ray.put(value)], what)
        except Exception as error:
            cause = error.__cause__ or error  # Ray explains in 30 lines
            raise TypeError(f"{what} can't be pickled: {cause}") from None

    def open(self) -> Any:
        """The value. Raises Refused if it can't be unpickled here."""
        try:
            return ray.get(self.references[0])
        except ray.exceptions.RaySystemError as error:
            reason = str(error).strip().splitlines()[-1]
            raise Refused(f"{self.what} can't be unpickled on this worker: {reason}") from None


class Executable(NamedTuple):
    """The class of which each worker makes an object, and its arguments."""

    cls: Optional[type] = None
    args: tuple[Any, ...] = ()
    kwargs: Optional[dict[str, Any]] = None

    def make(self) -> Any:
        """The object; None of no class."""
        return self.cls(*self.args, **(self.kwargs or {})) if self.cls else None


def executable_parcel(executable: Executable) -> Parcel:
    """A parcel with it. Raises TypeError for what can't be pickled."""
    return Parcel.of(executable, "the executable or one of its arguments")


def function_parcel(fn: Callable[[Any], Any]) -> Parcel:
    """The same with a function."""
    return Parcel.of(fn, "the function or one of its arguments")
