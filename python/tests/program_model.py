"""Random programs of collectives, and what they must give: the plain NumPy model that
test_random_programs.py compares with.

Values are small integers, so that sums and products are exact in every type and order; where a
division or Adasum rounds, comparisons allow for it.
"""

import random
from typing import Any, NamedTuple, Optional

import numpy as np

import horovod.torch as hvd

# bfloat16 is modelled in float32.
FLOATS = ("float16", "bfloat16", "float32", "float64")
INTEGERS = ("uint8", "int8", "int16", "int32", "int64")
TYPES = FLOATS + INTEGERS + ("bool",)
REDUCTIONS = (hvd.Average, hvd.Sum, hvd.Min, hvd.Max, hvd.Product)
KINDS = ("allreduce", "allgather", "broadcast", "alltoall", "reducescatter")
FACTORS = (1.0, 1.0, 1.0, 0.5, 2.0)


class Tensor(NamedTuple):
    """One tensor of an operation: what each member of the set gives."""

    dtype: str
    shapes: list[tuple[int, ...]]  # by place in the set
    seed: int


class Step(NamedTuple):
    """One operation of some set."""

    name: str
    kind: str
    members: tuple[int, ...]  # global ranks
    tensors: list[Tensor]  # more than one: a group
    reduction: int = hvd.Sum
    prescale: float = 1.0
    postscale: float = 1.0
    in_place: bool = False
    root: int = 0  # global rank
    splits: Optional[list[list[int]]] = None  # by place in the set
    wrong: Optional[tuple[int, str]] = None  # this rank asks for something else: which, and what


class Program(NamedTuple):
    """`steps` are submitted by each rank in a different order; then `ordered`, whose operations
    have no names; then each rank does the first `joins_after[rank]` of `last`, and joins."""

    steps: list[Step]
    ordered: list[Step]
    last: list[Step]
    joins_after: Optional[list[int]]


def _shape(rng: random.Random) -> tuple[int, ...]:
    return tuple(rng.choice((1, 2, 3, 5)) for _ in range(rng.randint(0, 3)))


def _tensor(rng: random.Random, kind: str, dtype: str, places: int) -> Tensor:
    shape = _shape(rng)
    if kind in ("allreduce", "broadcast"):
        if rng.random() < 0.05:
            shape = (0,) + shape
        return Tensor(dtype, [shape] * places, rng.getrandbits(32))
    if kind == "reducescatter":
        return Tensor(dtype, [(rng.randint(0, 7),) + shape] * places, rng.getrandbits(32))
    shapes = [(rng.randint(0, 4),) + shape for _ in range(places)]
    return Tensor(dtype, shapes, rng.getrandbits(32))


def random_step(rng: random.Random, name: str, sets: list[tuple[int, ...]], kinds=KINDS) -> Step:
    kind, members = rng.choice(kinds), rng.choice(sets)
    places = len(members)
    may_group = kind in ("allreduce", "allgather", "reducescatter")
    count = rng.randint(2, 4) if may_group and rng.random() < 0.3 else 1
    reduces = kind in ("allreduce", "reducescatter")
    reduction = rng.choice(REDUCTIONS) if reduces else hvd.Sum
    if kind == "allreduce" and rng.random() < 0.1:
        reduction = hvd.Adasum
    types = ("float32", "float64") if reduction == hvd.Adasum else TYPES
    step = Step(
        name,
        kind,
        members,
        [_tensor(rng, kind, rng.choice(types), places) for _ in range(count)],
        reduction,
        in_place=kind in ("allreduce", "broadcast") and rng.random() < 0.4,
        root=rng.choice(members),
    )
    if reduces and reduction in (hvd.Average, hvd.Sum):
        step = step._replace(prescale=rng.choice(FACTORS), postscale=rng.choice(FACTORS))
    if kind != "alltoall":
        return step
    if rng.random() < 0.3:  # evenly
        (tensor,) = step.tensors
        shapes = [(rng.randint(0, 2) * places,) + shape[1:] for shape in tensor.shapes]
        return step._replace(tensors=[tensor._replace(shapes=shapes)])
    (tensor,) = step.tensors
    splits = [[rng.randint(0, 2) for _ in members] for _ in members]
    extra = rng.randint(0, 1)  # rows that no member receives
    shapes = [(sum(s) + extra,) + shape[1:] for s, shape in zip(splits, tensor.shapes)]
    return step._replace(tensors=[tensor._replace(shapes=shapes)], splits=splits)


def _spoil(rng: random.Random, step: Step) -> Step:
    """One rank asks for something that does not fit."""
    # Another kind of operation is another name: who waits for which when all stand still decides what fails.
    ways = ["type"]
    if step.kind in ("allreduce", "reducescatter"):
        ways += ["factor", "shape"]
    if step.kind == "broadcast":
        ways += ["root", "shape"]
    return step._replace(wrong=(rng.choice(step.members), rng.choice(ways)))


def random_program(seed: int, size: int, sets: list[tuple[int, ...]]) -> Program:
    """The same on every rank."""
    rng = random.Random(f"{seed} on {size} ranks")
    everyone = [tuple(range(size))]
    prefix = f"program{seed}."
    steps = [random_step(rng, prefix + str(i), sets) for i in range(rng.randint(2, 8))]
    if rng.random() < 0.3:
        wide = [i for i, step in enumerate(steps) if len(step.members) > 1]
        for i in wide[: rng.randint(1, 2)]:
            steps[i] = _spoil(rng, steps[i])
    ordered = [random_step(rng, "", sets) for _ in range(rng.choice((0, 0, 1, 3)))]
    last, joins_after = [], None
    if rng.random() < 0.3:
        count = rng.randint(0, 4)
        last = [random_step(rng, prefix + "last" + str(i), everyone, ("allreduce",)) for i in range(count)]
        joins_after = [rng.randint(0, count) for _ in range(size)]
        joins_after[rng.randrange(size)] = count
    return Program(steps, ordered, last, joins_after)


# The model.


def _numpy_type(dtype: str) -> Any:
    return np.dtype("float32" if dtype == "bfloat16" else dtype)


def value_of(tensor: Tensor, place: int) -> np.ndarray:
    """Returns the input of the member at `place`."""
    rng = np.random.default_rng((tensor.seed, place))
    low = 0 if tensor.dtype in ("uint8", "bool") else -3
    high = 1 if tensor.dtype == "bool" else 3
    values = rng.integers(low, high, size=tensor.shapes[place], endpoint=True)
    return np.asarray(values).astype(_numpy_type(tensor.dtype))


def _scaled(values: np.ndarray, factor: float) -> np.ndarray:
    """Integers are multiplied as double and cut off; a false factor is all that booleans know."""
    if factor == 1.0:
        return values
    if values.dtype == bool:
        return values
    if values.dtype.kind == "f":
        return (values * values.dtype.type(factor)).astype(values.dtype)
    limits = np.iinfo(values.dtype)
    product = np.trunc(values.astype(np.float64) * factor)
    return np.clip(product, limits.min, limits.max).astype(values.dtype)


def _adasum(vectors: list[np.ndarray]) -> np.ndarray:
    def pair(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        dot, aa, bb = (a * b).sum(), (a * a).sum(), (b * b).sum()
        return (1 - dot / (2 * aa) if aa else 1) * a + (1 - dot / (2 * bb) if bb else 1) * b

    vectors = [vector.astype(np.float64) for vector in vectors]
    places = 1
    while places * 2 <= len(vectors):
        places *= 2
    folded = len(vectors) - places
    pairs = [pair(vectors[2 * i], vectors[2 * i + 1]) for i in range(folded)]
    vectors = pairs + vectors[2 * folded :]
    while len(vectors) > 1:
        vectors = [pair(a, b) for a, b in zip(vectors[::2], vectors[1::2])]
    return vectors[0]


def reduced(step: Step, values: list[np.ndarray], places: int) -> np.ndarray:
    """`values` of those who take part, of a set with so many places."""
    dtype = values[0].dtype
    values = [_scaled(value, step.prescale) for value in values]
    if step.reduction == hvd.Adasum:
        return _scaled(_adasum(values).astype(dtype), step.postscale)
    stacked = np.stack(values)
    if step.reduction in (hvd.Sum, hvd.Average):
        result = stacked.any(0) if dtype == np.bool_ else stacked.sum(0, dtype=dtype)
    elif step.reduction == hvd.Product:
        result = stacked.all(0) if dtype == np.bool_ else stacked.prod(0, dtype=dtype)
    else:
        result = stacked.min(0) if step.reduction == hvd.Min else stacked.max(0)
    divides = step.reduction == hvd.Average and dtype != np.bool_
    if divides and dtype.kind != "f" and step.postscale == 1.0:
        return (np.sign(result) * (np.abs(result.astype(np.int64)) // places)).astype(dtype)
    return _scaled(result, step.postscale / places if divides else step.postscale)


def rows_of(rows: int, places: int, place: int) -> slice:
    """Reducescatter's share of the member at `place`."""
    shares = [rows // places + (1 if i < rows % places else 0) for i in range(places)]
    return slice(sum(shares[:place]), sum(shares[: place + 1]))


def expected(step: Step, place: int) -> list[np.ndarray]:
    """Returns the results of the member at `place`, one array for each tensor."""
    results, places = [], len(step.members)
    for tensor in step.tensors:
        values = [value_of(tensor, i) for i in range(places)]
        if step.kind == "allreduce":
            results.append(reduced(step, values, places))
        elif step.kind == "allgather":
            results.append(np.concatenate(values))
        elif step.kind == "broadcast":
            results.append(values[step.members.index(step.root)])
        elif step.kind == "reducescatter":
            rows = rows_of(len(values[0]), places, place)
            results.append(reduced(step, values, places)[rows])
        else:
            results.append(np.concatenate(received_rows(step, values, place)))
    return results


def received_rows(step: Step, values: list[np.ndarray], place: int) -> list[np.ndarray]:
    """What each member sends to the one at `place` in an alltoall."""
    parts = []
    for sender, value in enumerate(values):
        even = [len(value) // len(values)] * len(values)
        splits = step.splits[sender] if step.splits is not None else even
        start = sum(splits[:place])
        parts.append(value[start : start + splits[place]])
    return parts
