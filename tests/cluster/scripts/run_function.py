"""Calls a function of this script on two hosts and prints what it returns."""

import socket
import sys

import horovod


def where(factor):
    import numpy

    import horovod.numpy as hvd

    hvd.init()
    everyone = hvd.allreduce(numpy.array([1 + hvd.rank()]), op=hvd.Sum).item()
    return socket.gethostname(), hvd.rank() * factor, everyone


if __name__ == "__main__":
    print("returned", horovod.run(where, (10,), num_proc=2, hosts=sys.argv[1]))
