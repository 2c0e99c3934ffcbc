"""Arrays of CuPy, of PyTorch, and of classes that have only DLPack or __cuda_array_interface__, in horovod.numpy: each operation gives what it
gives for numpy's arrays, waits for the array's stream, and copies nothing to the host."""

import itertools
import os

import numpy as np
import torch

import horovod.numpy as hnp
from checks import Skipped, check, run_all
from gpu_rank import IS_SIMULATED, bus_copies, hvd
from horovod.common.exceptions import HorovodRequestError
from horovod.numpy.elastic import State
from lent_arrays import libraries

TYPES = ["uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64", "bool", "complex64"]
SHAPES = [(0,), (17,), (1000, 7)]
# With NCCL each operation of N ranks on one GPU takes some turns of all of them, 2 ms each.
FEW_TYPES, FEW_SHAPES = ["int16", "float32", "complex64"], [(1000, 7)]
LOOSE = {"float16": 2e-3, "float32": 1e-6, "float64": 1e-12, "complex64": 1e-6}
ON_DEVICE = os.environ.get("HOROVOD_GPU_OPERATIONS") != "HOST"
found = libraries()
whole = found.get("cupy", found["torch"])  # the library that all types and shapes are of


def for_each(function):
    """A check for each library, whose last parameter is the library."""
    for name, library in found.items():

        def one(library=library):
            function(library)

        one.__name__ = f"{function.__name__} of {name}"
        check(one)
    return function


def values(dtype, shape, seed):
    generator = np.random.default_rng(1000 * seed + hvd.rank())
    return generator.integers(0 if dtype == "bool" else 1, 2 if dtype == "bool" else 4, shape).astype(dtype)


def expect(library, what, got, on_host):
    assert library.is_own(got), (what, type(got))
    host = library.host(got)
    assert host.dtype == on_host.dtype and host.shape == on_host.shape, (what, host.dtype, host.shape, on_host.shape)
    loose = LOOSE.get(host.dtype.name, 0)
    np.testing.assert_allclose(host, on_host, rtol=loose, atol=loose, err_msg=str(what))


def check_reductions(library, what, array, host):
    for op, factor in itertools.product((hnp.Average, hnp.Sum, hnp.Min, hnp.Max, hnp.Product), (1.0, 0.5)):
        if host.dtype.kind == "b" and (op == hnp.Average or factor != 1.0):
            continue
        if host.dtype.kind == "c" and op not in (hnp.Average, hnp.Sum):
            continue
        arguments = dict(op=op, prescale_factor=factor)
        expect(library, (what, op), hnp.allreduce(array, **arguments), hnp.allreduce(host, **arguments))
        expect(library, (what, op), hnp.reducescatter(array, **arguments), hnp.reducescatter(host, **arguments))


def check_moves(library, what, array, host):
    expect(library, what, hnp.allgather(array), hnp.allgather(host))
    part = len(host) * (hvd.rank() + 1) // hvd.size()  # other ranks have less, or nothing
    on_part = library.make(host[:part])
    expect(library, (what, "part"), hnp.allgather(on_part), hnp.allgather(host[:part]))
    unit = len(host) // (hvd.size() * (hvd.size() + 1) // 2)
    splits = [unit * (to + 1) for to in range(hvd.size())]
    rows, received = hnp.alltoall(array, splits=splits)
    on_host, expected = hnp.alltoall(host, splits=splits)
    expect(library, (what, splits), rows, on_host)
    assert isinstance(received, np.ndarray) and received.tolist() == expected.tolist()
    for root in range(hvd.size()):
        expect(library, (what, root), hnp.broadcast(array, root), hnp.broadcast(host, root))


@for_each
def results_are_numpys(library):
    types, shapes = (TYPES, SHAPES) if library is whole and hvd.size() > 1 and ON_DEVICE else (FEW_TYPES, FEW_SHAPES)
    for seed, (dtype, shape) in enumerate(itertools.product(types, shapes), 1):
        host = values(dtype, shape, seed)
        array = library.make(host)
        check_reductions(library, (dtype, shape), array, host)
        check_moves(library, (dtype, shape), array, host)
        assert (library.host(array) == host).all(), "the input has changed"


@for_each
def adasum(library):
    host = values("float32", (1000,), 5)
    expect(library, "Adasum", hnp.allreduce(library.make(host), op=hnp.Adasum), hnp.allreduce(host, op=hnp.Adasum))


@for_each
def groups(library):
    hosts = [values(dtype, (size,), 7 + size) for dtype, size in (("float32", 5), ("int32", 70000), ("float32", 1))]
    results = hnp.grouped_allreduce([library.make(host) for host in hosts], op=hnp.Max)
    for got, host in zip(results, hnp.grouped_allreduce(hosts, op=hnp.Max)):
        expect(library, "group", got, host)
    mixed = hnp.grouped_allreduce([library.make(hosts[0]), hosts[1]], op=hnp.Max)
    expect(library, "mixed group", mixed[0], hnp.allreduce(hosts[0], op=hnp.Max))
    assert isinstance(mixed[1], np.ndarray)


@for_each
def many_in_flight(library):
    hosts = [np.full((1000 * (hvd.rank() + 1), 5), float(i), np.float32) for i in range(10)]
    handles = [hnp.allgather_async(library.make(host)) for host in hosts]
    for i, handle in enumerate(handles):
        gathered = library.host(hnp.synchronize(handle))
        assert gathered.shape == (500 * hvd.size() * (hvd.size() + 1), 5) and (gathered == i).all()


def reduced_late(library, submit):
    """Submits `submit(array)` while a kernel that makes the array still waits for its turn; returns the sum of the results on the host."""
    with library.on_stream():
        array = library.make(np.zeros(1 << 16, np.float32))
        inside = library.tensor_of(array)
        inside += 0  # now the kernel is loaded, which may wait for the device
        library.slow()
        inside += hvd.rank() + 1
        return library.host(submit(array))


@for_each
def the_arrays_stream_is_waited_for(library):
    total = hvd.size() * (hvd.size() + 1) // 2
    for submit in (
        lambda array: hnp.allreduce(array, op=hnp.Sum),
        lambda array: hnp.grouped_allreduce([array, library.make(np.ones(3, np.float32))], op=hnp.Sum)[0],
    ):
        reduced = reduced_late(library, submit)
        assert (reduced == total).all(), (reduced[0], total)
    root = hvd.size() - 1
    assert (reduced_late(library, lambda array: hnp.broadcast(array, root)) == root + 1).all()
    gathered = reduced_late(library, hnp.allgather)
    assert gathered[0] == 1 and gathered[-1] == hvd.size()


@for_each
def memory_that_a_kernel_still_writes_is_no_result(library):
    with library.on_stream():
        array = library.make(np.ones(1 << 20, np.float32))
        other = library.make(np.ones(1 << 20, np.float32))
        inside = library.tensor_of(other)
        inside *= 1
        library.slow()
        inside *= -7
        del other, inside  # its memory may become the result's
        assert (library.host(hnp.allreduce(array, op=hnp.Max)) == 1).all()


@for_each
def nothing_goes_over_the_bus(library):
    if not IS_SIMULATED:
        raise Skipped("only the simulated GPU counts copies")
    if not ON_DEVICE:
        return  # all goes over the bus
    arrays = [library.make(values("float32", (1 << 14,), seed)) for seed in range(3)]
    before = bus_copies()
    hnp.grouped_allreduce(arrays)
    results = [
        hnp.allreduce(arrays[0]),
        hnp.allreduce(arrays[0], op=hnp.Min),
        hnp.broadcast(arrays[0], 0),
        hnp.allgather(arrays[0]),
        hnp.reducescatter(arrays[0]),
        hnp.alltoall(arrays[0]),
    ]
    assert bus_copies() == before and all(map(library.is_own, results))
    library.host(hnp.allreduce(arrays[0], op=hnp.Adasum))
    assert bus_copies() > before, "the count counts nothing"


@for_each
def what_is_not_contiguous_is_refused(library):
    array = library.make(np.ones((8, 6), np.float32))
    inside = library.tensor_of(array).T
    array = library.lend(inside) if hasattr(library, "lend") else inside
    try:
        hnp.allreduce(array)
    except ValueError as error:
        assert "contiguous" in str(error) and "\n" not in str(error), error
    else:
        raise AssertionError("it was taken")


@for_each
def host_on_one_rank_is_a_mismatch(library):
    if hvd.size() == 1 or not ON_DEVICE:
        return  # there is nothing to mix
    host = np.ones(4, np.float32)
    try:
        hnp.allreduce(host if hvd.rank() == 0 else library.make(host), name="mixed")
    except HorovodRequestError as error:
        assert "rank 0 sent float32 [4] on the host" in str(error), error
    else:
        raise AssertionError("a mix of host and GPU went unnoticed")


@for_each
def states(library):
    def own(shape):
        return hnp.broadcast(library.make(np.full(shape, float(hvd.rank()))), hvd.size() - 1)

    class Model:
        def __init__(self):
            self.weights = own(7)

        def state_dict(self):
            return {"weights": self.weights}

        def load_state_dict(self, loaded):
            assert library.is_own(loaded["weights"]), "it is not where the model has it"
            inside = library.tensor_of(self.weights)
            inside[:] = library.tensor_of(loaded["weights"])

    state = State(weights=own(5), parts=[own((2, 3))], model=Model(), epoch=0)
    places = state.weights, state.parts[0], state.model.weights

    def add(number):
        for array in places:
            inside = library.tensor_of(array)
            inside += number

    def expect_all(number):
        for array in places:
            assert (library.host(array) == number).all(), (library.host(array), number)

    add(hvd.rank())
    state.sync()
    expect_all(hvd.size() - 1)
    add(1)
    state.commit()
    add(1)
    state.restore()
    assert state.weights is places[0] and state.parts[0] is places[1], "it was replaced"
    expect_all(hvd.size())


def expect_refused_capture(function):
    try:
        function()
    except RuntimeError as error:
        assert "outside of the capture" in str(error) and "\n" not in str(error), error
    else:
        raise AssertionError("the capture was not refused")


@check
def capture_by_torch_is_refused_in_one_line():
    def captured():
        with torch.cuda.graph(torch.cuda.CUDAGraph()):
            hnp.allreduce(array)

    array = found["torch"].make(np.ones(3, np.float32))
    torch.cuda.synchronize()
    expect_refused_capture(captured)
    torch.cuda.synchronize()
    assert (found["torch"].host(hnp.allreduce(array, op=hnp.Sum)) == hvd.size()).all()


@check
def capture_by_cupy_is_refused_in_one_line():
    if "cupy" not in found or IS_SIMULATED:
        raise Skipped("needs CuPy")
    library = found["cupy"]
    array = library.make(np.ones(3, np.float32))
    with library.on_stream():
        library.stream.begin_capture()
        try:
            expect_refused_capture(lambda: hnp.allreduce(array))
        finally:
            library.stream.end_capture()
    assert (library.host(hnp.allreduce(array, op=hnp.Sum)) == hvd.size()).all()


@check
def objects():
    library = whole
    sent = hnp.broadcast_object({"weights": library.make(np.full(3, hvd.rank())), "step": hvd.rank()}, 0)
    assert sent["step"] == 0 and (library.host(sent["weights"]) == 0).all()


@check
def a_tensor_with_a_gradient_is_refused():
    tensor = found["torch"].make(np.ones(3, np.float32)).requires_grad_()
    try:
        hnp.allreduce(tensor)
    except ValueError as error:
        assert "gradient" in str(error) and "\n" not in str(error), error
    else:
        raise AssertionError("it was taken")


run_all()
