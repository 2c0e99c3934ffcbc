"""The Trainer of Transformers on a backend of torch.distributed: with_transformers.py BACKEND FILE, under horovodrun"""

import json
import os
import sys
import tempfile
from typing import Any

import torch
import torch.distributed as dist
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments, set_seed

import horovod.torch.distributed  # noqa: F401

BACKEND, FILE = sys.argv[1:]
dist.init_process_group(BACKEND)  # TrainingArguments keep it; on CPUs ddp_backend may be "gloo" only

set_seed(0)
texts = [{"input_ids": row, "labels": row} for row in torch.randint(0, 50, (48, 16))]
model: Any = GPT2LMHeadModel(GPT2Config(vocab_size=50, n_positions=16, n_embd=16, n_layer=1, n_head=2))
with tempfile.TemporaryDirectory() as folder:
    arguments = TrainingArguments(
        output_dir=folder,
        use_cpu=True,
        per_device_train_batch_size=4,
        gradient_accumulation_steps=2,
        num_train_epochs=2,
        eval_strategy="epoch",
        logging_steps=1,
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
    )
    trainer = Trainer(model, arguments, train_dataset=texts, eval_dataset=texts[:9])
    trainer.train()
assert dist.get_backend() == BACKEND and arguments.world_size == dist.get_world_size() == 2
if dist.get_rank() == 0:
    logged = [
        (entry["step"], entry[name])
        for entry in trainer.state.log_history
        for name in ("loss", "eval_loss")
        if name in entry
    ]
    with open(FILE, "w") as file:
        json.dump({"logged": logged, "weights": [weight.tolist() for weight in model.parameters()]}, file)
dist.destroy_process_group()
sys.stdout.flush()
os._exit(0)  # Gloo rarely aborts a process at its end
