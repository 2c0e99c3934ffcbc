"""Rank 1 leaves while rank 0 waits within a call of XLA, whose error has to say so."""

import torch

from gpu_rank import device, hvd
from xla_frame import Call, CallError

data, result = torch.ones(1000, device=device), torch.empty(1000, device=device)
Call("both", [data], [result], torch.cuda.current_stream()).run()
if hvd.rank() == 0:
    try:
        Call("alone", [data], [result], torch.cuda.current_stream()).run()
    except CallError as error:
        assert str(error).startswith("HorovodInternalError: "), error
        print("the error reached the caller", flush=True)
hvd.shutdown()
