"""Streams of CUDA and operations: what was queued before an operation is part of it, what comes after it sees its result."""

import os

import torch
import torch.distributed as dist

from checks import Skipped, check, run_all
from gpu_rank import IS_SIMULATED, device, hvd

COUNT = 1 << 20


def busy(data, turns=20):
    """`data`, after a queue of kernels that leave it as it is."""
    for _ in range(turns):
        data = data * 1.0
    return data


def expect(tensor, value):
    assert (tensor == value).all().item(), (tensor.flatten()[:3].tolist(), value)


@check
def work_queued_before_is_part_of_the_operation():
    for turn in range(20):
        data = busy(torch.full((COUNT,), float(turn + hvd.rank()), device=device))
        expect(hvd.allreduce(data, op=hvd.Max), turn + hvd.size() - 1)


@check
def work_queued_after_sees_the_result():
    for turn in range(20):
        handle = hvd.allreduce_async(torch.full((COUNT,), float(turn), device=device), op=hvd.Sum)
        expect(hvd.synchronize(handle) + 1.0, turn * hvd.size() + 1)


@check
def side_stream():
    side = torch.cuda.Stream()
    for turn in range(20):
        data = torch.full((COUNT,), float(turn), device=device)
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            reduced = hvd.allreduce(busy(data), op=hvd.Sum)
            result = reduced + 1.0
        torch.cuda.current_stream().wait_stream(side)
        expect(result, turn * hvd.size() + 1)


@check
def several_streams_at_once():
    streams = [torch.cuda.Stream() for _ in range(4)]
    for turn in range(10):
        handles = []
        for number, stream in enumerate(streams):
            with torch.cuda.stream(stream):
                data = busy(torch.full((COUNT,), float(10 * turn + number), device=device))
                handles.append(hvd.allreduce_async(data, op=hvd.Sum, name=f"stream {number}"))
        for number, handle in enumerate(handles):
            expect(hvd.synchronize(handle), (10 * turn + number) * hvd.size())


@check
def result_of_one_stream_is_read_on_another():
    first, second = torch.cuda.Stream(), torch.cuda.Stream()
    for turn in range(20):
        with torch.cuda.stream(first):
            reduced = hvd.allreduce(busy(torch.full((COUNT,), float(turn), device=device)), op=hvd.Sum)
        with torch.cuda.stream(second):  # without waiting for the first one
            expect(reduced, turn * hvd.size())


@check
def memory_of_inputs_may_be_used_again():
    for turn in range(50):
        handle = hvd.allreduce_async(busy(torch.full((COUNT,), float(turn), device=device), 3), op=hvd.Sum)
        expect(hvd.synchronize(handle), turn * hvd.size())
        torch.full((COUNT,), -1.0, device=device)


@check
def capture_in_a_cuda_graph_is_refused_in_one_line():
    static = torch.ones(COUNT, device=device)
    hvd.allreduce(static)
    try:
        with torch.cuda.graph(torch.cuda.CUDAGraph()):
            hvd.allreduce(static)
    except RuntimeError as error:
        assert "CUDA graph" in str(error) and "\n" not in str(error), error
    else:
        raise AssertionError("the capture was not refused")
    torch.cuda.synchronize()
    expect(hvd.allreduce(static, op=hvd.Sum), hvd.size())


@check
def graph_beside_operations():
    """A step whose computation is a graph, and whose reductions are not."""
    static = torch.ones(COUNT, device=device)
    doubled = static * 2.0
    graph = torch.cuda.CUDAGraph()
    torch.cuda.synchronize()
    with torch.cuda.graph(graph):
        doubled = static * 2.0
    if IS_SIMULATED:
        raise Skipped("the simulated GPU replays no graphs")
    for turn in range(5):
        static.fill_(float(turn))
        graph.replay()
        expect(hvd.allreduce(doubled, op=hvd.Sum), 2 * turn * hvd.size())


@check
def process_group_of_torch_beside_ours():
    if not dist.is_nccl_available():
        raise Skipped("this torch has no NCCL")
    store = dist.FileStore(os.environ["PEER_STORE"], hvd.size())
    dist.init_process_group("nccl", store=store, rank=hvd.rank(), world_size=hvd.size())
    for turn in range(20):
        theirs = busy(torch.full((COUNT,), float(turn), device=device))
        dist.all_reduce(theirs)
        ours = hvd.allreduce(theirs, op=hvd.Sum)
        dist.all_reduce(ours)
        expect(ours, turn * hvd.size() ** 3)
    dist.destroy_process_group()


run_all()
