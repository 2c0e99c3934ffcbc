"""A rank of a communicator of the simulated NCCL, without torch.

rank.py connect|operations|wait_for_peer UNIQUE_ID RANK SIZE
"""

import ctypes
import signal
import sys
import time

import numpy as np

what, own_id, rank, size = sys.argv[1], bytes.fromhex(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
cuda, nccl = ctypes.CDLL("libcuda.so.1"), ctypes.CDLL("libnccl.so.2")
INVALID_USAGE, IN_PROGRESS, NOT_READY = 5, 7, 600
SUM, PRODUCT, MAX, MIN, AVERAGE = range(5)
TYPES = {  # by their numbers
    0: np.int8, 1: np.uint8, 2: np.int32, 3: np.uint32, 4: np.int64, 5: np.uint64, 6: np.float16, 7: np.float32, 8: np.float64,
    9: "bfloat16",
}  # fmt: skip


class UniqueId(ctypes.Structure):
    _fields_ = [("internal", ctypes.c_char * 128)]


class Config(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_size_t),
        ("magic", ctypes.c_uint),
        ("version", ctypes.c_uint),
        ("blocking", ctypes.c_int),
    ]


def check(result, *others):
    assert result in (0, *others), result


def start_device():
    context, stream = ctypes.c_void_p(), ctypes.c_void_p()
    check(cuda.cuInit(0))
    check(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
    check(cuda.cuCtxPushCurrent_v2(context))
    check(cuda.cuStreamCreate(ctypes.byref(stream), 1))
    return stream


def state():
    error = ctypes.c_int()
    check(nccl.ncclCommGetAsyncError(comm, ctypes.byref(error)))
    return error.value


def settled():
    while (now := state()) == IN_PROGRESS:
        time.sleep(0.001)
    return now


def connect():
    made = ctypes.c_void_p()
    config = Config(24, 0xCAFEBEEF, 21400, 0)
    # An error may be there already, if the ranks are quick.
    check(
        nccl.ncclCommInitRankConfig(ctypes.byref(made), size, UniqueId(own_id), rank, ctypes.byref(config)),
        IN_PROGRESS,
        INVALID_USAGE,
    )
    return made


def encoded(values, dtype):
    if dtype == "bfloat16":
        return (np.asarray(values, np.float32).view(np.uint32) >> 16).astype(np.uint16)
    return np.asarray(values).astype(dtype)


def decoded(array, dtype):
    return (array.astype(np.uint32) << 16).view(np.float32) if dtype == "bfloat16" else array


def upload(array):
    place = ctypes.c_ulonglong()
    check(cuda.cuMemAlloc_v2(ctypes.byref(place), ctypes.c_size_t(max(array.nbytes, 1))))
    check(
        cuda.cuMemcpyHtoDAsync_v2(place, array.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(array.nbytes), stream)
    )
    return place


def download(place, like, count):
    array = np.empty(count, like.dtype)
    check(
        cuda.cuMemcpyDtoHAsync_v2(array.ctypes.data_as(ctypes.c_void_p), place, ctypes.c_size_t(array.nbytes), stream)
    )
    check(cuda.cuStreamSynchronize(stream))
    return array


def run(call, number, values, out_count):
    """The values of the result of a call(in, out)."""
    dtype = TYPES[number]
    given = encoded(values, dtype)
    source, target = upload(given), upload(np.zeros(out_count, given.dtype))
    check(call(source, target), IN_PROGRESS)
    check(settled())
    result = decoded(download(target, given, out_count), dtype)
    for place in (source, target):
        check(cuda.cuMemFree_v2(place))
    return result.astype(np.float64)


def values_of(which, count):
    return (np.arange(count) + which) % 3 + 1.0


def reductions(number, count):
    all_values = np.stack([values_of(r, count) for r in range(size)])
    n = ctypes.c_size_t(count)
    expected = {SUM: all_values.sum(0), PRODUCT: all_values.prod(0), MAX: all_values.max(0), MIN: all_values.min(0)}
    if size != 3:
        expected[AVERAGE] = all_values.sum(0) / size if number >= 6 else all_values.sum(0) // size
    for op, wanted in expected.items():
        call = lambda a, b, op=op: nccl.ncclAllReduce(a, b, n, number, op, comm, stream)  # noqa: E731
        got = run(call, number, all_values[rank], count)
        assert (got == wanted).all(), (number, op)
    got = run(
        lambda a, b: nccl.ncclReduce(a, b, n, number, SUM, size - 1, comm, stream), number, all_values[rank], count
    )
    assert (got == (expected[SUM] if rank == size - 1 else 0)).all(), number
    blocks = np.concatenate([values_of(r, count) for r in range(size)])
    got = run(lambda a, b: nccl.ncclReduceScatter(a, b, n, number, SUM, comm, stream), number, blocks, count)
    assert (got == values_of(rank, count) * size).all(), number


def scaled(number, count):
    op, factor = ctypes.c_int(), encoded([0.5], TYPES[number])
    check(nccl.ncclRedOpCreatePreMulSum(ctypes.byref(op), factor.ctypes.data_as(ctypes.c_void_p), number, 1, comm))
    call = lambda a, b: nccl.ncclAllReduce(a, b, ctypes.c_size_t(count), number, op, comm, stream)  # noqa: E731
    assert (run(call, number, np.full(count, 2.0), count) == size).all(), number
    check(nccl.ncclRedOpDestroy(op, comm))


def moves(number, count):
    n = ctypes.c_size_t(count)
    got = run(lambda a, b: nccl.ncclBroadcast(a, b, n, number, 0, comm, stream), number, values_of(rank, count), count)
    assert (got == values_of(0, count)).all(), number
    got = run(
        lambda a, b: nccl.ncclAllGather(a, b, n, number, comm, stream), number, values_of(rank, count), count * size
    )
    assert (got == np.concatenate([values_of(r, count) for r in range(size)])).all(), number

    def ring(source, target):
        check(nccl.ncclGroupStart())
        check(nccl.ncclSend(source, n, number, (rank + 1) % size, comm, stream))
        check(nccl.ncclRecv(target, n, number, (rank - 1) % size, comm, stream))
        return nccl.ncclGroupEnd()

    assert (run(ring, number, values_of(rank, count), count) == values_of((rank - 1) % size, count)).all(), number


def operations():
    check(settled())
    for number in TYPES:
        for count in (1, 1001, 100000):
            reductions(number, count)
            moves(number, count)
            if number >= 6:
                scaled(number, count)
    check(nccl.ncclCommFinalize(comm), IN_PROGRESS)
    check(settled())
    check(nccl.ncclCommDestroy(comm))
    assert nccl.ncclCommFinalize(comm) == 4  # it is gone


def wait_for_peer():
    """Rank 1 does nothing; rank 0 waits for it until there is an error, or SIGUSR1 comes."""
    check(settled())
    print("connected", flush=True)
    if rank == 1:
        signal.pause()
    told = []
    signal.signal(signal.SIGUSR1, lambda *_: told.append(True))
    event, place = ctypes.c_void_p(), upload(np.ones(1 << 20, np.float32))
    check(nccl.ncclAllReduce(place, place, ctypes.c_size_t(1 << 20), 7, SUM, comm, stream), IN_PROGRESS)
    check(settled(), 6)
    check(cuda.cuEventCreate(ctypes.byref(event), 2))
    check(cuda.cuEventRecord(event, stream))
    print("waits", flush=True)
    while state() == 0 and not told:
        assert cuda.cuEventQuery(event) == NOT_READY
        time.sleep(0.001)
    if state() != 0:
        print("error", state(), flush=True)
    for _ in range(100):  # the kernel hangs, whatever has happened
        assert cuda.cuEventQuery(event) == NOT_READY
        time.sleep(0.001)
    check(nccl.ncclCommAbort(comm))
    check(cuda.cuStreamSynchronize(stream))
    print("aborted", flush=True)


stream = start_device()
comm = connect()
if what == "connect":
    print("answer", settled(), flush=True)
    signal.pause()
globals()[what]()
