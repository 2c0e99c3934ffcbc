"""``torch.cuda``: the capture of graphs, as far as a program can ask whether it is captured. The captured work runs at once, and nothing
can be replayed."""

import contextlib

import torch

_capturing = set()  # ids of streams


def is_current_stream_capturing():
    return torch.cuda.current_stream().cuda_stream in _capturing


class CUDAGraph:
    is_simulated = True

    def __init__(self, keep_graph=False):
        self._stream = None

    def capture_begin(self, pool=None, capture_error_mode="global", check_input_liveness=False):
        self._stream = torch.cuda.current_stream().cuda_stream
        if self._stream == 0:
            raise RuntimeError("CUDA graphs must be captured on a non-default stream.")
        _capturing.add(self._stream)

    def capture_end(self):
        _capturing.discard(self._stream)

    def replay(self):
        raise NotImplementedError("the simulated GPU replays no graph")

    def reset(self):
        pass

    def pool(self):
        return (0, 0)


@contextlib.contextmanager
def graph(cuda_graph, pool=None, stream=None, capture_error_mode="global", **unused):
    torch.cuda.synchronize()
    with torch.cuda.stream(torch.cuda.Stream() if stream is None else stream):
        cuda_graph.capture_begin(pool, capture_error_mode)
        try:
            yield
        finally:
            cuda_graph.capture_end()


def install():
    for each in (CUDAGraph, graph, is_current_stream_capturing):
        setattr(torch.cuda, each.__name__, each)
        setattr(torch.cuda.graphs, each.__name__, each)
