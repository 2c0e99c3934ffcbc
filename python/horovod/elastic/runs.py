"""The runs of a script: its calls of functions decorated with hvd.elastic.run, numbered from 1 in the order in which the script
makes them.

A commit belongs to a run, and carries what is left of the runs before it: what they returned, and how they left their
states. A process that starts later runs the script from its top. So it passes those runs: it takes over their results.
"""

import io
import pickle
from collections.abc import Sequence
from typing import Any, NamedTuple, Optional, Protocol

from horovod import _ffi


class RunsState(Protocol):
    """What a run needs of its state."""

    def _final(self) -> bytes: ...

    def _be_given(self, final: bytes) -> None: ...

    def _named_parts(self) -> dict[str, object]: ...


class Record(NamedTuple):
    """A run that has ended."""

    function: str
    state: int  # the number of its state among the script's
    raised: bool
    outcome: bytes  # the result or the exception, pickled; empty: it can't be pickled
    why: str  # it can't be pickled


class CanNotPass(RuntimeError):
    """A process can't pass a run that has ended; the message says why."""


class Passed(Exception):
    """The job is in a later run than this process."""


class Runs:
    """The runs that this process knows of. Not thread-safe: a script has one thread that trains."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Makes the next run the first one, as in a new process."""
        self.number = 0  # of the run in which the script is, or was last; 0: it was in none
        self.inside = False
        self.state_kind = ""  # the name of the class of the run's state
        self.is_under_way = False  # this process has a state of this run, which newcomers lack
        self.has_passed = False  # the last run
        self._job = ""
        self._records: list[Record] = []
        self._finals: dict[int, bytes] = {}  # by the numbers of the states
        self._states = 0
        self._token = object()

    # This process's own runs.

    def begin(self, state: Any) -> None:
        """Begins the next run of the script."""
        if self.number == 0 or self._job != _ffi.job_id():
            self.forget()
            self._job = _ffi.job_id()
        self.number += 1
        self.inside, self.is_under_way = True, False
        self.state_kind = type(state).__name__
        if vars(state).get("_number_in_script", (None, 0))[0] is not self._token:
            vars(state)["_number_in_script"] = (self._token, self._states)
            self._states += 1

    def end(self, function: str, state: RunsState, outcome: Any, raised: bool, keeps_final: bool) -> None:
        """Records how the run has ended. `keeps_final`: new processes may come, which need its final state."""
        self.inside = self.has_passed = False
        number = _number_of(state)
        self._records.append(Record(function, number, raised, *_pickled(state, outcome)))
        if keeps_final and not raised:
            self._finals[number] = state._final()

    def pass_(self, function: str, state: RunsState) -> Any:
        """Gives `state` what the run left in it, and returns what it returned, or raises what it raised. Raises CanNotPass."""
        self.inside, self.has_passed = False, True
        record = self._records[self.number - 1]
        where = f"run {self.number} of the script ({function})"
        if (record.function, record.state) != (function, _number_of(state)):
            raise CanNotPass(
                f"{where} was another one in this job, {record.function}: each process has to begin the same runs, with the "
                "same states, in the same order; a new training needs an empty checkpoint_dir"
            )
        ended = f"{where} ended before this process began, and"
        if not record.outcome:
            raise CanNotPass(f"{ended} what it returned can't be had: {record.why}")
        if record.raised:
            raise pickle.loads(record.outcome)
        final = self._finals.get(record.state, b"")
        if not final:
            kind = type(state).__name__
            raise CanNotPass(
                f"{ended} how it left its state can't be had: use a state derived from hvd.elastic.ObjectState, not {kind}"
            )
        try:
            state._be_given(final)
            return _Unpickler(record.outcome, state).load()
        except Exception as error:  # what a pickle or a foreign state raises
            reason = (str(error) or type(error).__name__).splitlines()[0]
            raise CanNotPass(f"{ended} what it left can't be used: {reason}") from error

    # What other processes know.

    def newest(self) -> int:
        """Returns the number of the newest run of the job that has not ended, as far as this process knows: new commits are its."""
        return len(self._records) + 1

    def ended(self) -> int:
        """Returns how many runs of the job have ended, as far as this process knows."""
        return len(self._records)

    def past(self) -> list[bytes]:
        """Returns all that :meth:`adopt` needs; nothing before the end of the first run."""
        if not self._records:
            return []
        return [pickle.dumps((self._records, list(self._finals)), protocol=4), *self._finals.values()]

    def adopt(self, past: Sequence[bytes]) -> None:
        """Takes over the :meth:`past` of another process or a predecessor, if that is more."""
        if not past:
            return
        records, numbers = pickle.loads(past[0])
        if len(records) > len(self._records):
            self._records, self._finals = records, dict(zip(numbers, past[1:]))

    def is_over(self) -> bool:
        """Returns whether the run in which the script is has ended in the job."""
        return 0 < self.number <= len(self._records)

    def is_in(self, run: int) -> bool:
        """Returns whether the script is in that run, or in none, where the commits of any run are its own."""
        return not self.inside or self.number == run


runs = Runs()


def _number_of(state: object) -> int:
    number: int = vars(state)["_number_in_script"][1]
    return number


# A result may be the state, or the model that is in it: then it is those of the process that passes the run.


def _pickled(state: RunsState, outcome: object) -> tuple[bytes, str]:
    """Returns the pickle of what a run returned; b"" and the reason if there is none."""
    parts = {id(part): name for name, part in state._named_parts().items()}
    parts[id(state)] = ""
    try:
        try:
            return _dumped(pickle.Pickler, outcome, parts), ""
        except Exception:  # functions and classes that have no name
            import cloudpickle  # not before it is needed: it costs imports

            return _dumped(cloudpickle.Pickler, outcome, parts), ""
    except Exception as error:
        reason = (str(error) or type(error).__name__).splitlines()[0]
        return b"", f"{type(outcome).__name__} can't be pickled ({reason})"


def _dumped(base: Any, outcome: object, parts: dict[int, str]) -> bytes:
    class Pickler(base):  # type: ignore[misc]  # one of two
        def persistent_id(self, value: object) -> Optional[str]:
            return parts.get(id(value))

    stream = io.BytesIO()
    Pickler(stream, protocol=4).dump(outcome)
    return stream.getvalue()


class _Unpickler(pickle.Unpickler):
    def __init__(self, contents: bytes, state: Any) -> None:
        super().__init__(io.BytesIO(contents))
        self._state = state

    def persistent_load(self, name: str) -> object:
        return getattr(self._state, name) if name else self._state
