"""What torch.compile does with the backend's own code: nothing."""

import inspect


def keep_from_compiler(*classes: type) -> None:
    """Has torch.compile run the methods of these classes, and what they call, as they are. C++ code of torch calls them in the
    middle of a compiled model: DistributedDataParallel does. Torch before 2.7 finds out by itself that it can't compile them.
    """
    try:
        from torch._C._dynamo.eval_frame import (  # type: ignore[attr-defined, unused-ignore]
            _FrameAction,
            _FrameExecStrategy,
            set_code_exec_strategy,
        )
    except ImportError:
        return
    as_it_is = _FrameExecStrategy(_FrameAction.SKIP, _FrameAction.SKIP)
    for of_class in classes:
        for value in vars(of_class).values():
            method = value.fget if isinstance(value, property) else value
            if inspect.isfunction(method):
                set_code_exec_strategy(method.__code__, as_it_is)
