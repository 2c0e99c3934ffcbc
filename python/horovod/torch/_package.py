"""Checks that PyTorch is installed, before another module of this package imports it."""

from horovod import _missing

_missing.framework("torch", "horovod.torch needs PyTorch: pip install torch")
