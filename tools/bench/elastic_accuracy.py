"""Compares the accuracy of elastic and static trainings on real digits: for each seed trains once with 4 workers throughout and once with a job
that shrinks to 2 and grows back to 4, and prints the last test accuracies.

    ./tools/run python tools/bench/elastic_accuracy.py [--seeds N] [--data-dir DIR]
"""

import argparse
import re
import statistics
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "support"))

from processes import Running  # noqa: E402


def train(seed, args, directory, changes):
    """Returns the last accuracy and the sizes that the job had; `changes` are pairs of epoch and slots."""
    present = Path(directory) / "present"
    present.write_text("localhost:4\n")
    script = Path(directory) / "discover.sh"
    script.write_text(f"#!/bin/sh\ncat {present}\n")
    script.chmod(0o755)
    command = ["horovodrun", "-np", "4", "--min-np", "2", "--max-np", "4", "--host-discovery-script", str(script), sys.executable,
               str(ROOT / "examples/pytorch_mnist_elastic.py"), "--seed", str(seed), "--epochs", str(args.epochs), "--batch-size", "16"]  # fmt: skip
    if args.data_dir:
        command += ["--data-dir", args.data_dir]
    job = Running(command)
    for epoch, slots in changes:
        job.stdout.wait_for(rf"epoch {epoch}: ", 300)
        present.write_text(f"localhost:{slots}\n")
    if job.wait(600) != 0:
        sys.exit(job.everything()[-3000:])
    said = re.findall(r"epoch (\d+): test accuracy ([\d.]+)%, (\d) workers", job.stdout.text)
    return float(said[-1][1]), [int(size) for _, _, size in said]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=18)
    parser.add_argument("--data-dir", help="MNIST's files; without it, scikit-learn's digits")
    args = parser.parse_args()
    steady, changing = [], []
    for seed in range(args.seeds):
        with tempfile.TemporaryDirectory() as directory:
            steady.append(train(seed, args, directory, [])[0])
            accuracy, sizes = train(seed, args, directory, [(args.epochs // 6, 2), (args.epochs // 2, 4)])
            changing.append(accuracy)
        if 2 not in sizes or sizes[-1] != 4:
            sys.exit(f"the job did not shrink and grow back: {sizes}")
        print(
            f"seed {seed}: steady {steady[-1]:.2f} %, 4 -> 2 -> 4 {changing[-1]:.2f} % ({sizes.count(2)} of {len(sizes)} epochs with 2)",
            flush=True,
        )
    print(f"mean steady {statistics.mean(steady):.2f} % (deviation {statistics.stdev(steady):.2f}), "
          f"changing {statistics.mean(changing):.2f} % (deviation {statistics.stdev(changing):.2f})")  # fmt: skip


if __name__ == "__main__":
    main()
