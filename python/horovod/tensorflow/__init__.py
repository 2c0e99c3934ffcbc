"""Horovod for TensorFlow: ``import horovod.tensorflow as hvd``."""

from horovod.common._essentials import *
from horovod.common.interface import *
from horovod.tensorflow import _gradients  # noqa: F401  # registers them
from horovod.tensorflow._queries import *
from horovod.tensorflow.mpi_ops import *
