"""Handwritten digits on Spark, with a job of fixed size or an elastic one:

    python examples/spark/digits_on_spark.py --num-proc 2
    spark-submit --master spark://HOST:7077 examples/spark/digits_on_spark.py --num-proc 4 --min-num-proc 2

The processes of the elastic job come and go with the executors. Without spark-submit it runs on this machine.
"""

import argparse
import os

from pyspark.sql import SparkSession

import horovod.spark


def train(epochs, rate):
    """Trains; called in each process of the job. Returns the test accuracy."""
    import torch
    import torch.nn.functional as F
    from sklearn.datasets import load_digits

    import horovod.torch as hvd

    hvd.init()
    torch.manual_seed(1)
    digits = load_digits()
    images, labels = torch.tensor(digits.data).float().div(16), torch.tensor(digits.target)
    train_set = torch.utils.data.TensorDataset(images[:1500], labels[:1500])
    sampler = hvd.elastic.ElasticSampler(train_set)
    loader = torch.utils.data.DataLoader(train_set, batch_size=32, sampler=sampler)
    model = torch.nn.Sequential(torch.nn.Linear(64, 32), torch.nn.ReLU(), torch.nn.Linear(32, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=rate, momentum=0.9)
    optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())

    @hvd.elastic.run
    def loop(state):
        while state.epoch < epochs:
            for index, (data, target) in enumerate(loader):
                state.optimizer.zero_grad()
                F.cross_entropy(state.model(data), target).backward()
                state.optimizer.step()
                state.sampler.record_batch(index, 32)
                state.commit()
            state.epoch += 1
            state.sampler.set_epoch(state.epoch)
            right = (state.model(images[1500:]).argmax(1) == labels[1500:]).float().mean().item()
            if hvd.rank() == 0:
                print(f"epoch {state.epoch}: test accuracy {right:.1%}, processes: {hvd.size()}")
        return right

    return loop(hvd.elastic.TorchState(model, optimizer, sampler=sampler, epoch=0))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--num-proc", type=int, default=2)
    parser.add_argument("--min-num-proc", type=int, help="an elastic job")
    parser.add_argument("--max-num-proc", type=int, help="of an elastic job")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--lr", type=float, default=0.05)
    args = parser.parse_args()

    os.environ.setdefault("MASTER", "local[2]")  # unless spark-submit or Spark's configuration names one
    builder = SparkSession.builder.appName("digits")
    session = builder.config(*horovod.spark.conf.SPARK_CONF_ALWAYS_RESTART_FAILED_TASK).getOrCreate()
    arguments = (args.epochs, args.lr)
    if args.min_num_proc is None:
        results = horovod.spark.run(train, arguments, num_proc=args.num_proc)
    else:
        limits = {"min_num_proc": args.min_num_proc, "max_num_proc": args.max_num_proc}
        results = horovod.spark.run_elastic(train, arguments, num_proc=args.num_proc, **limits)
    print(f"{len(results)} processes, test accuracy {results[0]:.1%}")
    session.stop()
