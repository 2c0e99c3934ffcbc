"""Elastic training, whatever framework the tensors are of.

A framework's own ``elastic`` package is made of these: :mod:`horovod.elastic.loop` runs a training
through changes of the world, :mod:`horovod.elastic.tensor_state` keeps what it needs to go on.
"""
