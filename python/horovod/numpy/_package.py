"""Checks that numpy is installed, before another module of this package imports it."""

from horovod import _missing

_missing.framework("numpy", "horovod.numpy needs numpy: pip install numpy")
