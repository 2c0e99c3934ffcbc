"""Runs test files on several ranks: ``python run_ranks.py N [FILE...] [-- PYTEST_ARGUMENT...]``.

N = 1 runs them without launcher. Exits with the status of the run.
"""

import os
import subprocess
import sys

from horovod.runner.launch import find_program

_HERE = os.path.dirname(os.path.abspath(__file__))
# These start or simulate their own worlds, so they run in one process.
_SINGLE = (
    "test_callers_python.py",
    "test_commit_protocol.py",
    "test_compatibility.py",
    "test_docstrings.py",
    "test_elastic_loop.py",
    "test_elastic_runs.py",
    "test_elastic_sampler.py",
    "test_handover.py",
    "test_import_circles.py",
    "test_import_order.py",
    "test_job.py",
    "test_missing.py",
    "test_object_state_store.py",
    "test_rendezvous_file.py",
    "test_origin.py",
    "test_rendezvous.py",
    "test_replicas.py",
    "test_run_api.py",
    "test_runner_names.py",
    "test_torch_checkpoint_choice.py",
    "test_torch_checkpoint_end.py",
    "test_torch_checkpoint_file.py",
    "test_torch_checkpoint_folder.py",
    "test_torch_checkpoint_owners.py",
    "test_torch_checkpoint_same_folder.py",
    "test_torch_checkpoint_url.py",
    "test_torch_checkpoints.py",
    "test_torch_rates_of_page.py",
    "test_torch_store.py",
    "test_tracebacks.py",
)


def command(ranks, files, arguments=()):
    """The command line that runs `files` on so many ranks."""
    pytest = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments, *files]
    if ranks == 1:
        return pytest
    # If a test fails on one rank, the others may wait for it forever.
    return [find_program("horovodrun"), "-np", str(ranks), *pytest, "-x"]


def main(arguments):
    ranks, *files = arguments
    extra = []
    if "--" in files:
        split = files.index("--")
        files, extra = files[:split], files[split + 1 :]
    if not files:
        files = sorted(name for name in os.listdir(_HERE) if name.startswith("test_"))
        if int(ranks) > 1:
            files = [name for name in files if name not in _SINGLE]
    files = [name if os.path.exists(name) else os.path.join(_HERE, name) for name in files]
    return subprocess.call(command(int(ranks), files, extra))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
