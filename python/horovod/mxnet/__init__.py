"""Horovod for MXNet 1.9.1: ``import horovod.mxnet as hvd``.

Arrays are in host memory, and every operation is complete when it returns. The import raises ImportError without that
version of MXNet.
"""

from horovod.common._built import *
from horovod.common._essentials import *
from horovod.common.process_sets import ProcessSet, add_process_set, global_process_set, remove_process_set  # noqa: F401
from horovod.mxnet import _version  # noqa: F401 - first of those that import MXNet
from horovod.mxnet.compression import Compression  # noqa: F401
from horovod.mxnet.functions import *
from horovod.mxnet.mpi_ops import *
from horovod.mxnet.trainer import *
