"""Handwritten digits on several workers:

horovodrun -np 2 python examples/pytorch_mnist.py [--data-dir FOLDER_WITH_MNIST]
"""

import argparse
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

import digits
import horovod.torch as hvd

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--data-dir", help="MNIST's files; without it, the digits that come with scikit-learn")
parser.add_argument("--epochs", type=int, default=5)
parser.add_argument("--batch-size", type=int, default=64, help="images per worker and step")
parser.add_argument("--lr", type=float, default=0.05, help="learning rate of one worker")
parser.add_argument("--momentum", type=float, default=0.5)
parser.add_argument("--seed", type=int, default=42)
parser.add_argument("--fp16-allreduce", action="store_true", help="send gradients as float16")
parser.add_argument("--use-adasum", action="store_true", help="combine the workers' steps by Adasum")
args = parser.parse_args()


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 10, kernel_size=5)
        self.conv2 = nn.Conv2d(10, 20, kernel_size=5)
        self.fc1 = nn.Linear(320, 50)
        self.fc2 = nn.Linear(50, 10)

    def forward(self, x):
        x = F.relu(F.max_pool2d(self.conv1(x), 2))
        x = F.relu(F.max_pool2d(self.conv2(x), 2))
        x = F.relu(self.fc1(x.flatten(1)))
        return F.log_softmax(self.fc2(x), dim=1)


def main():
    # 1. Join the other workers.
    hvd.init()
    torch.manual_seed(args.seed)
    torch.set_num_threads(1)  # the workers share the cores
    device = torch.device("cpu")
    if torch.cuda.is_available():
        device = torch.device("cuda", hvd.local_rank())

    # 2. Each worker trains on its own part of the data.
    train_set, test_set = digits.load(args.data_dir, train=True), digits.load(args.data_dir, train=False)
    sampler = torch.utils.data.distributed.DistributedSampler(train_set, num_replicas=hvd.size(), rank=hvd.rank())
    loader = torch.utils.data.DataLoader(train_set, batch_size=args.batch_size, sampler=sampler)

    # 3. The learning rate grows with the number of workers; Adasum adapts the step size itself.
    model = Net().to(device)
    lr = args.lr if args.use_adasum else args.lr * hvd.size()
    optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=args.momentum)

    # 4. Reduce the gradients over all workers.
    optimizer = hvd.DistributedOptimizer(
        optimizer,
        named_parameters=model.named_parameters(),
        compression=hvd.Compression.fp16 if args.fp16_allreduce else hvd.Compression.none,
        op=hvd.Adasum if args.use_adasum else hvd.Average,
    )

    # 5. All start from the same weights.
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)

    for epoch in range(1, args.epochs + 1):
        sampler.set_epoch(epoch)
        started = time.perf_counter()
        loss = train(model, loader, optimizer, device)
        speed = len(sampler) * hvd.size() / (time.perf_counter() - started)
        accuracy = test(model, test_set, device)
        if hvd.rank() == 0:
            print(
                f"epoch {epoch}: loss {loss:.4f}, test accuracy {accuracy:.2%}, {speed:.0f} images/s, {hvd.size()} worker(s)",
                flush=True,
            )


def train(model, loader, optimizer, device):
    """One epoch; returns the mean loss over all workers."""
    model.train()
    total = torch.zeros(())
    for images, labels in loader:
        optimizer.zero_grad()
        loss = F.nll_loss(model(images.to(device)), labels.to(device))
        loss.backward()
        optimizer.step()
        total += loss.detach().cpu()
    return hvd.allreduce(total / len(loader), name="loss").item()


def test(model, test_set, device):
    """Each worker tests a part of the data; returns the accuracy over all of it."""
    model.eval()
    images, labels = (tensor[hvd.rank() :: hvd.size()].to(device) for tensor in test_set.tensors)
    with torch.no_grad():
        right = (model(images).argmax(dim=1) == labels).sum()
    return hvd.allreduce(right, name="right", op=hvd.Sum).item() / len(test_set)


if __name__ == "__main__":
    main()
