"""Distributed training with Horovod's interface.

Frameworks have a package each: ``import horovod.torch as hvd``. ``horovod.run`` starts a function on
several ranks from Python.
"""

import importlib

__version__ = "1.0.0"


def run(*args, **kwargs):
    """Runs a function on several ranks and returns what they return; see
    :func:`horovod.runner.run`."""
    from horovod.runner import run as runner_run  # not before it is asked for: it costs imports

    return runner_run(*args, **kwargs)


def __getattr__(name):
    # PyTorch Lightning 1.5 finds out by hasattr(horovod, "torch") whether there is Horovod.
    if name == "torch":
        try:
            return importlib.import_module("horovod.torch")
        except ImportError as error:
            raise AttributeError("horovod.torch can't be imported: {}".format(error)) from error
    raise AttributeError("module {!r} has no attribute {!r}".format(__name__, name))
