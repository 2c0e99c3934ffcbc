"""Trains small models with PyTorch Lightning, and writes what came of it to OUT/RANK.json.

lightning_train.py OUT SCENARIO...     under horovodrun: with Horovod's strategy; by itself: one process on the joined batches
"""

import contextlib
import json
import os
import sys
from pathlib import Path

import pytorch_lightning as pl
import torch
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

import horovod.lightning
import horovod.torch as hvd
from horovod.torch._differentiable import collectives

IS_JOB = "HOROVOD_RANK" in os.environ
IS_1 = pl.__version__.startswith("1.")
OUT = Path(sys.argv[1])
hvd.init()
torch.set_num_threads(1)
JOINED_BATCH = 16
LR_SCALE = 1 / hvd.size() if IS_1 else 1  # 1.x multiplies by the size


def data(n=64):
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(n, 8, generator=generator)
    return TensorDataset(x, (x[:, 0] + x[:, 1] > 0).long())


def loader(n=64, train=True):
    """In a job it is Lightning that deals the data out: shuffled if it is for training, in the order that the sampler here has too."""
    sampler = DistributedSampler(data(n), 1, 0) if train and not IS_JOB else None
    return DataLoader(data(n), batch_size=JOINED_BATCH // hvd.size(), sampler=sampler)


class Model(pl.LightningModule):
    """Its weights differ between ranks before they are broadcast."""

    def __init__(self, optimizer="Adam", norm=False):
        super().__init__()
        torch.manual_seed(hvd.rank())
        norm = torch.nn.BatchNorm1d(16) if norm else torch.nn.Identity()
        self.net = torch.nn.Sequential(torch.nn.Linear(8, 16), norm, torch.nn.Tanh(), torch.nn.Linear(16, 2))
        self.make_optimizer = getattr(torch.optim, optimizer)
        self.curve = []

    def loss(self, batch):
        return torch.nn.functional.cross_entropy(self.net(batch[0]), batch[1])

    def training_step(self, batch, index):
        loss = self.loss(batch)
        self.log("loss", loss, sync_dist=True)
        self.curve.append(hvd.allreduce(loss.detach(), op=hvd.Average).item())
        return loss

    def configure_optimizers(self):
        return self.make_optimizer(self.parameters(), lr=0.05 * LR_SCALE)


class Logged(pl.Callback):
    """What Lightning has for "loss" after each batch."""

    def __init__(self):
        self.values = []

    def on_train_batch_end(self, trainer, *_):
        self.values.append(trainer.callback_metrics["loss"].item())


def trainer(**options):
    options = {"max_epochs": 2, "logger": False, "enable_checkpointing": False, **options}
    strategy = {"strategy": "horovod"} if IS_JOB else {}
    return pl.Trainer(
        **strategy, accelerator="cpu", devices=1, enable_progress_bar=False, enable_model_summary=False,
        num_sanity_val_steps=0, **options,
    )  # fmt: skip


def weights(model):
    return torch.nn.utils.parameters_to_vector(model.net.parameters()).tolist()


@contextlib.contextmanager
def reductions_counted(counts):
    allreduce = collectives.allreduce

    def counting(tensor, call):
        if not call.name.startswith("horovod."):  # the ranks' agreement on what to reduce
            counts.append(call.name)
        return type(allreduce).start(allreduce, tensor, call)

    allreduce.start = counting
    try:
        yield
    finally:
        del allreduce.start


def plain():
    model, logged = Model(), Logged()
    trainer(callbacks=[logged]).fit(model, loader())
    return {"curve": model.curve, "weights": weights(model), "logged": logged.values}


def clipped():
    """Clipping needs the reduced gradients; so does a hook that looks at them."""

    class Watched(Model):
        def on_before_optimizer_step(self, *_):
            self.norms.append(torch.nn.utils.parameters_to_vector([p.grad for p in self.parameters()]).norm().item())

    model = Watched("SGD")
    model.norms = []
    trainer(gradient_clip_val=0.05).fit(model, loader())
    return {"curve": model.curve, "weights": weights(model), "norms": model.norms}


def accumulated():
    model, names = Model(), []
    with reductions_counted(names):
        trainer(accumulate_grad_batches=4, max_epochs=3).fit(model, loader(96))
    return {"curve": model.curve, "weights": weights(model), "reductions": len(names)}


def searched():
    """An optimizer that decides by the loss, always of the same batch: LBFGS would make much of a rounded bit."""

    class Searched(Model):
        def configure_optimizers(self):
            return torch.optim.LBFGS(self.parameters(), lr=0.5, max_iter=4, line_search_fn="strong_wolfe")

    model = Searched()
    trainer(max_epochs=4).fit(model, loader(JOINED_BATCH))
    return {"curve": model.curve, "weights": weights(model)}


def manual():
    """Two optimizers, trained in turn, one accumulating."""

    class Pair(Model):
        automatic_optimization = False

        def __init__(self):
            super().__init__("SGD")
            self.automatic_optimization = False
            self.other = torch.nn.Linear(8, 2)

        def configure_optimizers(self):
            return [
                torch.optim.SGD(self.net.parameters(), lr=0.1 * LR_SCALE, momentum=0.9),
                torch.optim.Adam(self.other.parameters(), lr=0.05 * LR_SCALE),
            ]

        def training_step(self, batch, index):
            first, second = self.optimizers()
            loss = self.loss(batch)
            first.zero_grad()
            self.manual_backward(loss)
            first.step()
            error = torch.nn.functional.cross_entropy(self.other(batch[0]), batch[1])
            if index % 2:
                self.manual_backward(error / 2)
                second.step()
                second.zero_grad()
            else:
                with second.toggle_model(sync_grad=False) if not IS_1 else contextlib.nullcontext():
                    self.manual_backward(error / 2)
            self.rates = [group["lr"] for group in first.param_groups]
            self.curve.append(hvd.allreduce(loss.detach() + error.detach(), op=hvd.Average).item())

    model = Pair()
    trainer().fit(model, loader())
    return {
        "curve": model.curve,
        "weights": weights(model) + model.other.weight.flatten().tolist(),
        "rates": model.rates,
    }


def resumed():
    """Two epochs, and two more from the checkpoint; the other ranks' files are not theirs."""
    folder = str(OUT / "checkpoints")  # with a Path in it, Lightning 1.9 and torch 2.6 could not read the checkpoint
    first = Model()
    keep = pl.callbacks.ModelCheckpoint(dirpath=folder, save_last=True)
    trainer(callbacks=[keep], enable_checkpointing=True).fit(first, loader())
    second = Model()
    trainer(max_epochs=4).fit(second, loader(), ckpt_path=folder + "/last.ckpt")
    saved = torch.load(folder + "/last.ckpt", weights_only=False)
    return {
        "curve": first.curve + second.curve,
        "weights": weights(second),
        "step": saved["global_step"],
        "files": len(os.listdir(folder)),
    }


def evaluated():
    """Validation, early stopping, test and prediction, with a metric of torchmetrics."""
    import torchmetrics

    class Evaluated(Model):
        def __init__(self):
            super().__init__()
            self.right = torchmetrics.MeanMetric()
            self.epochs = []

        def validation_step(self, batch, index):
            self.log("val_loss", self.loss(batch), sync_dist=True)
            self.log("worst", self.loss(batch), sync_dist=True, reduce_fx="max")
            self.right.update((self.net(batch[0]).argmax(1) == batch[1]).float())
            self.log("right", self.right)

        test_step = validation_step

        def predict_step(self, batch, index):
            return self.net(batch[0])

        def on_validation_epoch_end(self):
            self.epochs.append(self.trainer.current_epoch)

    model = Evaluated()
    # Never better than at first: patience is 1, so two epochs.
    stopping = pl.callbacks.EarlyStopping("val_loss", patience=1, min_delta=1e6)
    run = trainer(callbacks=[stopping], max_epochs=5)
    run.fit(model, loader(), loader(32, train=False))
    metrics = {name: value.item() for name, value in run.callback_metrics.items() if name != "loss"}
    (tested,) = run.test(model, loader(32, train=False), verbose=False)
    rows = torch.cat(run.predict(model, loader(32, train=False)))
    return {
        "epochs": model.epochs,
        "metrics": metrics,
        "tested": tested,
        "rows": len(rows),
        "synchronized": model.right.dist_sync_fn is not None,
    }


def normalized():
    model = Model("SGD", norm=True)  # a bias before the norm has no gradient but noise, which Adam would follow
    trainer(**({"sync_batchnorm": True} if IS_JOB else {})).fit(model, loader())
    norm = model.net[1]
    kind = type(norm).__name__
    return {"curve": model.curve, "weights": weights(model), "mean": norm.running_mean.tolist(), "kind": kind}


def mixed():
    model = Model()
    trainer(precision="bf16-mixed").fit(model, loader())
    return {"curve": model.curve, "weights": weights(model)}


def scaled():
    """A loss that overflows on one rank in one step: all ranks skip that step, and only that."""

    class Overflowing(Model):
        def training_step(self, batch, index):
            self.scales.append(self.trainer.precision_plugin.scaler.get_scale())
            loss = super().training_step(batch, index)
            return loss * float("inf") if index == 1 and hvd.rank() == hvd.size() - 1 else loss

    model = Overflowing()
    model.scales = []
    plugin = pl.plugins.MixedPrecision("16-mixed", "cpu", torch.amp.GradScaler("cpu", init_scale=1024.0))
    trainer(plugins=[plugin], max_epochs=1).fit(model, loader())
    return {"weights": weights(model), "scales": model.scales}


def asked():
    """What the Trainer's strategy answers by itself."""
    strategy = trainer(max_epochs=1).strategy
    rank = hvd.rank()
    x = torch.tensor([1.0 + rank], requires_grad=True)
    gathered = strategy.all_gather(x, sync_grads=True)
    (gathered.flatten() * torch.tensor([1.0, 10.0])).sum().backward()
    reduce = strategy.reduce
    return {
        "gathered": gathered.tolist(),
        "gradient": x.grad.item(),
        "not differentiated": strategy.all_gather(x).requires_grad,
        "mean of integers": reduce(torch.tensor(rank)).item(),
        "sum": reduce(torch.tensor([rank + 1]), reduce_op="sum").tolist(),
        "max": reduce(torch.tensor(rank), reduce_op=torch.distributed.ReduceOp.MAX).item(),
        "all": strategy.reduce_boolean_decision(rank == 0),
        "any": strategy.reduce_boolean_decision(rank == 0, all=False),
        "broadcast": strategy.broadcast({"from": rank}, 1),
        "ranks": [strategy.global_rank, strategy.local_rank, strategy.world_size, strategy.is_global_zero],
    }


def failing():
    """An exception in the middle of an epoch on the last rank. A callback saves a checkpoint on the way out."""

    class Failing(Model):
        def training_step(self, batch, index):
            if index == 2 and hvd.rank() == hvd.size() - 1:
                raise KeyError("broken batch")
            return super().training_step(batch, index)

    saving = [] if IS_1 else [pl.callbacks.OnExceptionCheckpoint(OUT)]
    trainer(callbacks=saving, enable_checkpointing=bool(saving)).fit(Failing(), loader())


OUT.mkdir(exist_ok=True)
results = {name: globals()[name]() for name in sys.argv[2:]}
results["strategy"] = horovod.lightning.HorovodStrategy.__name__
(OUT / f"{hvd.rank()}.json").write_text(json.dumps(results))
