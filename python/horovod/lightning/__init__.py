"""Horovod for PyTorch Lightning: importing this registers ``Trainer(strategy="horovod")``::

    import lightning as L  # or: import pytorch_lightning as L
    import horovod.lightning

    trainer = L.Trainer(strategy="horovod", devices=1)

:class:`HorovodStrategy` is for Lightning 2.1 and later, as ``lightning.pytorch`` or as ``pytorch_lightning``. If both are
installed, import the one that the script uses first. Lightning 1.6 to 1.9 have their own strategy; ``HorovodStrategy`` is
that one then.
"""

from horovod.lightning import _packages, _strategy

_registered = [_strategy.of_package(name) for name in _packages.in_use()]
HorovodStrategy = _registered[0]

__all__ = ["HorovodStrategy"]
