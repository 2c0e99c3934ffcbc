"""Handwritten digits on a Ray cluster, with a job of fixed size or an elastic one:

    python examples/ray/digits_on_ray.py --num-workers 2
    python examples/ray/digits_on_ray.py --min-workers 1 --max-workers 4 --address auto

Without --address it starts a cluster on this machine. The workers of the elastic job come and go with the nodes.
"""

import argparse

import ray

from horovod.ray import RayExecutor


def train(epochs, rate):
    """Trains; called in each worker. Returns the test accuracy."""
    import torch
    import torch.nn.functional as F
    from sklearn.datasets import load_digits

    import horovod.torch as hvd
    from horovod.ray import ray_logger

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
            ray_logger.log({"epoch": state.epoch, "accuracy": right, "workers": hvd.size()})
        return right

    return loop(hvd.elastic.TorchState(model, optimizer, sampler=sampler, epoch=0))


def show(value):
    print("epoch {epoch}: test accuracy {accuracy:.1%}, workers: {workers}".format(**value), flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--address", help="of the cluster: auto, HOST:PORT, or ray://HOST:PORT")
    size = parser.add_mutually_exclusive_group(required=True)
    size.add_argument("--num-workers", type=int, help="a job of fixed size")
    size.add_argument("--min-workers", type=int, help="an elastic job")
    parser.add_argument("--max-workers", type=int, help="of an elastic job")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--lr", type=float, default=0.05)
    args = parser.parse_args()

    own = {} if args.address else {"num_cpus": 4, "include_dashboard": False}
    ray.init(address=args.address or "local", **own)  # "local": not a cluster that runs here already
    executor = RayExecutor(
        RayExecutor.create_settings(),
        num_workers=args.num_workers,
        min_workers=args.min_workers,
        max_workers=args.max_workers,
    )
    executor.start()
    results = executor.run(train, args=[args.epochs, args.lr], callbacks=[show])
    print(f"{len(results)} workers, test accuracy {results[0]:.1%}")
    executor.shutdown()
