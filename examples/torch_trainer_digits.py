"""The Trainer of Transformers over Horovod's engine, with checkpoints that it resumes from:

horovodrun -np 2 python examples/torch_trainer_digits.py
torchrun --nproc-per-node 2 examples/torch_trainer_digits.py --checkpoints folder
"""

import argparse
import tempfile
from pathlib import Path

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from transformers import PrinterCallback, Trainer, TrainerCallback, TrainingArguments, set_seed

import digits
import horovod.torch.distributed  # noqa: F401  # an installed wheel does not need it

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--data-dir", help="MNIST's files; without it, the digits that come with scikit-learn")
parser.add_argument("--epochs", type=int, default=3)
parser.add_argument("--batch-size", type=int, default=32, help="images per worker and step")
parser.add_argument("--checkpoints", help="a folder of all ranks; the training continues from the newest one in it")
parser.add_argument("--backend", default="hvd", help="of torch.distributed")
args = parser.parse_args()


class Digits(nn.Module):
    """A model for the Trainer: its forward pass takes the columns of the data by name, and returns the loss."""

    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Flatten(), nn.Linear(784, 64), nn.ReLU(), nn.Linear(64, 10))

    def forward(self, images, labels):
        scores = self.net(images)
        return {"loss": F.cross_entropy(scores, labels), "logits": scores}


class Say(TrainerCallback):
    """Prints one line an epoch."""

    def on_evaluate(self, arguments, state, control, metrics, **_):
        if state.is_world_process_zero:
            print(f"epoch {round(state.epoch)}: test accuracy {metrics['eval_accuracy']:.2%}", flush=True)


def newest_checkpoint(folder):
    """The Trainer writes its state last. A checkpoint without it is one whose writer was killed."""
    found = [state.parent for state in Path(folder).glob("checkpoint-*/trainer_state.json")]
    return max(found, key=lambda checkpoint: int(checkpoint.name.split("-")[1]), default=None)


def rows(train):
    images, labels = digits.load(args.data_dir, train).tensors
    return [{"images": image, "labels": label} for image, label in zip(images, labels)]


def accuracy(prediction):
    return {"accuracy": (prediction.predictions.argmax(axis=1) == prediction.label_ids).mean()}


dist.init_process_group(
    args.backend
)  # before TrainingArguments, which keep it; on CPUs they take no other name than gloo
set_seed(42)
torch.set_num_threads(1)
with tempfile.TemporaryDirectory() as folder:
    arguments = TrainingArguments(
        output_dir=args.checkpoints or folder,
        use_cpu=True,
        num_train_epochs=args.epochs,
        per_device_train_batch_size=args.batch_size,
        learning_rate=0.005,
        eval_strategy="epoch",
        save_strategy="epoch" if args.checkpoints else "no",
        save_total_limit=2,
        logging_strategy="no",
        report_to="none",
        ddp_find_unused_parameters=False,
        disable_tqdm=True,
    )
    trainer = Trainer(
        Digits(),
        arguments,
        train_dataset=rows(True),
        eval_dataset=rows(False),
        compute_metrics=accuracy,
        callbacks=[Say],
    )
    trainer.remove_callback(PrinterCallback)
    trainer.train(resume_from_checkpoint=newest_checkpoint(arguments.output_dir))
dist.destroy_process_group()
