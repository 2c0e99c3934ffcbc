"""Checks MXNet's version. Raises a one-line ImportError unless it is the supported version."""

from horovod import _missing

_NEEDED = "horovod.mxnet needs MXNet 1.9.1"
_INSTALL = "pip install mxnet==1.9.1 'numpy<1.24'"

# With a numpy that is too new for it, it raises an AttributeError or an ImportError.
_mxnet = _missing.framework("mxnet", f"{_NEEDED}: {_INSTALL}", Exception)

_found = getattr(_mxnet, "__version__", "unknown")
if _found != "1.9.1":
    raise ImportError(f"{_NEEDED}, this one is {_found}: {_INSTALL}")
