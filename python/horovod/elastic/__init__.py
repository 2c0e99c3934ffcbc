"""Elastic training, for the tensors of any framework.

A framework's own ``elastic`` package is built on these modules: :mod:`horovod.elastic.loop` runs a training through changes
of the world, :mod:`horovod.elastic.tensor_state` keeps the state that it needs to continue.
"""
