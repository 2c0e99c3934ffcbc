"""Looks for MXNet. ImportError, of one line, unless it is the version that this package knows."""

_INSTALL = "pip install mxnet==1.9.1 'numpy<1.24'"

try:
    import mxnet
except Exception as error:  # an AttributeError with a numpy that is too new for it
    raise ImportError(f"horovod.mxnet needs MXNet 1.9.1 ({error}): {_INSTALL}") from error

_found = getattr(mxnet, "__version__", "unknown")
if _found != "1.9.1":
    raise ImportError(f"horovod.mxnet needs MXNet 1.9.1, this one is {_found}: {_INSTALL}")
