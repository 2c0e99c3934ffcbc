"""The common part of :mod:`horovod.keras` and :mod:`horovod.tensorflow.keras`: Keras 2.13 to 2.15, tf-keras, and Keras 3 on its
TensorFlow, JAX and torch backends.

The Keras that an optimizer or a model belongs to is derived from the object itself (packages.py), because a process may
have imported several. Public functions are in interface.py. optimizer.py makes optimizers distributed, with keras2.py and
keras3.py. The backend's own Horovod package reduces gradients (reducers.py).
"""
