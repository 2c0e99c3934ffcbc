"""What :mod:`horovod.keras` and :mod:`horovod.tensorflow.keras` share: Keras 2.13 to 2.15, tf-keras, and
Keras 3 on its TensorFlow, JAX and torch backends.

Which Keras an optimizer or a model belongs to is asked of the object itself (packages.py): a process may
have imported several. What users call is in interface.py; optimizer.py makes optimizers distributed, by
keras2.py and keras3.py; gradients are reduced by the backend's own Horovod package (reducers.py).
"""
