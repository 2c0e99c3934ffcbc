"""A training for tests of elastic jobs: small, deterministic, and written down. torch_training.py and numpy_training.py are what it trains.

    elastic_train.py [--epochs N] [--samples N] [--batch N] ...; see below

Every process prints JSON lines (time: CLOCK_REALTIME in seconds; host, pid: whose line it is):
  {"world": EPOCH, "rank": R, "size": N, "steps": S}    it begins to train in this world, S steps being committed
  {"event": "stepped", "world": EPOCH, "step": S, "epoch": E, "samples": [...]}   it has trained on these samples in step S, and commits them next
  {"ready": true, "init_seconds": T}    all is made that it trains with, hvd.init() having taken T
  {"done": true, "digest": "..."}   the training is over, the weights being these
and what the time of a recovery is made of: the events restore, restored, reset; and raised, with --raise-on-signal. With --digests the first two have
"weights", a checksum of model and optimizer.

With --gates a process stops at a point of its commits if DIRECTORY/POINT-RANK, a named pipe, is there: it prints {"event": "held", "at": POINT,
"commit": S} and goes on when something has been written to the pipe. In order: "begun" (the ranks know of it), "copying" (a part has been
copied), "copied", "agreed" (all ranks have begun it), "sealed" (it is the newest of this process).
"""

import argparse
import hashlib
import importlib
import json
import mmap
import os
import select
import signal
import sys
import time
import zlib

parser = argparse.ArgumentParser()
parser.add_argument("--framework", choices=["torch", "numpy"], default="torch")
parser.add_argument("--log-dir", help="for a file with the same lines, one a process")
parser.add_argument("--end-file", help="the training ends after the epoch in which this file is there")
parser.add_argument("--fail-at-start-file", help="processes that start while this file is there exit with 7")
parser.add_argument("--trouble", default="", help="Python code to run before each step; knows world, rank and step")
parser.add_argument("--gates", help="a directory for named pipes, see above")
parser.add_argument(
    "--raise-on-signal", action="store_true", help="SIGUSR1 raises an exception, wherever the training is"
)
parser.add_argument("--digests", action="store_true")
parser.add_argument("--job", help="a name for this training, in every line")
parser.add_argument("--epochs", type=int, default=2)
parser.add_argument("--samples", type=int, default=240)
parser.add_argument("--batch", type=int, default=4)
parser.add_argument("--step-seconds", type=float, default=0.05)
parser.add_argument("--megabytes", type=float, default=1.0, help="of parameters")
parser.add_argument("--ballast-megabytes", type=int, default=0, help="of resident memory beside")
parser.add_argument("--checkpoint-dir")
parser.add_argument("--checkpoint-every", type=int, default=1)
args = parser.parse_args()


HOST = os.uname().nodename
own_log = None
if args.log_dir:
    own_log = os.open(os.path.join(args.log_dir, f"{HOST}-{os.getpid()}"), os.O_CREAT | os.O_WRONLY | os.O_APPEND)


def log(**entry):
    # In one write, so that it is one line whatever happens to this process.
    line = (
        json.dumps({"time": time.time(), "host": HOST, "pid": os.getpid(), "job": args.job, **entry}) + "\n"
    ).encode()
    if own_log is not None:
        os.write(own_log, line)
    os.write(1, line)


log(started=True)
if args.fail_at_start_file and os.path.exists(args.fail_at_start_file):
    sys.exit(7)
if args.ballast_megabytes:
    ballast = mmap.mmap(
        -1, args.ballast_megabytes << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | mmap.MAP_POPULATE
    )


sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))  # where runpy runs this file
frameworks = importlib.import_module(f"{args.framework}_training")
hvd = frameworks.hvd

from horovod import _ffi  # noqa: E402
from horovod.elastic import commits  # noqa: E402


def gate(point):
    if not args.gates:
        return
    try:
        pipe = os.open(os.path.join(args.gates, f"{point}-{hvd.rank()}"), os.O_RDONLY | os.O_NONBLOCK)
    except FileNotFoundError:
        return
    log(event="held", at=point, commit=state.steps)
    waiting = select.poll()
    waiting.register(pipe, select.POLLIN)
    waiting.poll(60000)
    os.close(pipe)


def gated(function, before=None, after=None):
    def call(*arguments):
        if before and state.committing:
            gate(before)
        result = function(*arguments)
        if after and state.committing:
            gate(after)
        return result

    return call


def append_in_two(addresses, sizes):
    """The first part of a commit is its values, the tensors follow."""
    store_append(addresses[:2], sizes[:2])
    gate("copying")
    store_append(addresses[2:], sizes[2:])


if args.gates:
    commits.begin = gated(commits.begin, after="begun")
    commits.end = gated(commits.end, before="copied", after="agreed")
    store_append, _ffi.store_append = _ffi.store_append, append_in_two
    _ffi.store_seal = gated(_ffi.store_seal, after="sealed")


class State(frameworks.State):
    """Says when what happens."""

    committing = False

    def commit(self):
        self.committing = True
        try:
            super().commit()
        finally:
            self.committing = False

    def restore(self):
        log(event="restore")
        super().restore()
        log(event="restored")

    def on_reset(self):
        log(event="reset")
        super().on_reset()


init_began = time.time()
hvd.init()
init_seconds = time.time() - init_began
training = frameworks.Training(args.samples, args.batch, width=max(1, int(args.megabytes * (1 << 20) / 4 / 20)))
durable = (
    {"checkpoint_dir": args.checkpoint_dir, "checkpoint_every": args.checkpoint_every} if args.checkpoint_dir else {}
)
state = State(**training.values(), epoch=0, steps=0, over=False, **durable)
state.register_reset_callbacks([lambda: training.set_learning_rate(0.01 * hvd.size())])


def told_to_end():
    """Alike on all ranks."""
    return bool(args.end_file) and frameworks.any_rank(os.path.exists(args.end_file))


trouble = compile(args.trouble, "trouble", "exec")


def weights():
    """What else than the sampler and the counters a commit holds."""
    if not args.digests:
        return {}
    digest = 0
    for array in training.weights() + training.momenta():
        digest = zlib.crc32(array, digest)
    return {"weights": digest}


@hvd.elastic.run
def train(state):
    world = _ffi.query("epoch")
    log(world=world, rank=hvd.rank(), size=hvd.size(), steps=state.steps, **weights())
    while state.epoch < args.epochs and not state.over:
        for index, (samples, batch) in enumerate(training.batches(state.sampler)):
            if args.step_seconds:
                time.sleep(args.step_seconds)  # what a larger model would take
            exec(trouble, {"world": world, "rank": hvd.rank(), "step": state.steps, "os": os, "sys": sys})
            training.step(batch)
            state.sampler.record_batch(index, len(samples))
            state.steps += 1
            log(event="stepped", world=world, step=state.steps, epoch=state.epoch, samples=samples, **weights())
            state.commit()
        state.epoch += 1
        state.sampler.set_epoch(state.epoch)
        state.over = told_to_end()
        state.commit()


def raise_error(number, frame):
    log(event="raised")
    raise RuntimeError("as the signal asks")


if args.raise_on_signal:
    signal.signal(signal.SIGUSR1, raise_error)
log(ready=True, init_seconds=init_seconds)
train(state)
digest = hashlib.sha256(b"".join(array.tobytes() for array in training.weights())).hexdigest()
log(done=True, digest=digest, rank=hvd.rank(), size=hvd.size())
