"""Functions and objects for workers, in Ray's object store: stored once for all workers, and unpickled where a failure can
be reported.
"""

from typing import Any, Callable, NamedTuple, Optional

import ray

from horovod.runner._adoption import Refused
from horovod.runner._python import CallersPython


class Parcel(NamedTuple):
    """A value that workers unpickle in a method. A failure to unpickle an argument directly would occur outside of the actor's
    methods.
    """

    references: list[Any]  # one; Ray leaves those in a list alone
    what: str  # it is, for messages
    python: CallersPython  # that has pickled it

    @classmethod
    def of(cls, value: Any, what: str) -> "Parcel":
        """Stores a value. Raises TypeError if it can't be pickled."""
        try:
            return cls([ray.put(value)], what, CallersPython.here())
        except Exception as error:
            cause = error.__cause__ or error  # Ray explains in 30 lines
            raise TypeError(f"{what} can't be pickled: {cause}") from None

    def open(self) -> Any:
        """Returns the value, whose modules are searched where the caller finds them. Raises Refused if it can't be unpickled
        here.
        """
        try:
            self.python.check()
        except RuntimeError as error:
            raise Refused(str(error)) from None
        self.python.take_paths(self.python.folders_only_here())
        try:
            return ray.get(self.references[0])
        except ray.exceptions.RaySystemError as error:
            reason = str(error).strip().splitlines()[-1]
            raise Refused(f"{self.what} can't be unpickled on this worker: {reason}") from None


class Executable(NamedTuple):
    """A class of which each worker creates an object, and its arguments."""

    cls: Optional[type] = None
    args: tuple[Any, ...] = ()
    kwargs: Optional[dict[str, Any]] = None

    def make(self) -> Any:
        """Creates the object; None if there is no class."""
        return self.cls(*self.args, **(self.kwargs or {})) if self.cls else None


def executable_parcel(executable: Executable) -> Parcel:
    """Returns a parcel with an executable. Raises TypeError if it can't be pickled."""
    return Parcel.of(executable, "the executable or one of its arguments")


def function_parcel(fn: Callable[[Any], Any]) -> Parcel:
    """Returns a parcel with a function. Raises TypeError if it can't be pickled."""
    return Parcel.of(fn, "the function or one of its arguments")
