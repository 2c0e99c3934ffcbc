"""The parts of the GPU check, in order of value, each with a limit on its time."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Part:
    """A file of tests.

    Attributes:
      name: the part's name; the tests are in parts/NAME_test.py.
      seconds: the limit on its time, about one and a half times what an H100 should need. So the sum of all limits exceeds the time of a
        run.
    """

    name: str
    seconds: int


PARTS = (
    Part("operations", 160),
    Part("training", 70),
    Part("elastic", 140),
    Part("streams", 60),
    Part("errors", 60),
    Part("arrays", 60),
    Part("speed", 110),
    Part("mps", 100),
    Part("compile", 80),
    Part("jax", 110),
    Part("memcheck", 90),
)

# A part needs this much to start a job at all.
LEAST_SECONDS = 15


def limit_of(part: Part, left: float, factor: float = 1.0) -> float:
    """Returns the time for `part` when `left` seconds of the run are left; 0 if it can't be run any more.

    Args:
      part: the part.
      left: the seconds left.
      factor: multiplies the part's own limit, for machines that are slower than the one it was chosen for.
    """
    return min(part.seconds * factor, left) if left >= LEAST_SECONDS else 0


def chosen(names: list[str]) -> list[Part]:
    """Returns the parts with these names, in order of value; all if there are none.

    Raises:
      ValueError: a name is unknown.
    """
    known = [part.name for part in PARTS]
    for name in names:
        if name not in known:
            raise ValueError(f"no part is called '{name}'; there are: {', '.join(known)}")
    return [part for part in PARTS if not names or part.name in names]
