"""Distributed training with Horovod's interface.

Frameworks have a package each: ``import horovod.torch as hvd``. ``horovod.run`` starts a function
  on several
ranks from Python.
"""

__version__ = "1.0.0"


def run(*args, **kwargs):
    """Runs a function on several ranks and returns what they return; see
    :func:`horovod.runner.run`."""
    from horovod.runner import run as runner_run  # not before it is asked for: it costs imports

    return runner_run(*args, **kwargs)
