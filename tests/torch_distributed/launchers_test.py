"""The backend hvd under launchers: ours, with and without encryption, torchrun, and mpirun. tests/cluster has srun."""

import os
import re
import subprocess
import sys
from pathlib import Path

SCRIPT = str(Path(__file__).parent / "scripts" / "env_launched.py")
PATIENCE = 120
MPIRUN = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-np", "2"]
TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--standalone"]


def output_of(*command: str, **variables: str) -> tuple[int, str]:
    """Returns the exit code of a command and what it prints."""
    ended = subprocess.run(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=PATIENCE,
        env={**os.environ, "OMP_NUM_THREADS": "1", **variables},
    )
    return ended.returncode, ended.stdout


def check_done(ended: tuple[int, str], ranks: int) -> None:
    assert ended[0] == 0, ended[1]
    assert sorted(re.findall(r"rank (\d) of \d is done", ended[1])) == [str(rank) for rank in range(ranks)], ended[1]


def test_horovodrun() -> None:
    check_done(output_of("horovodrun", "-np", "3", sys.executable, SCRIPT), 3)


def test_horovodrun_that_encrypts() -> None:
    ended = output_of("horovodrun", "--encrypt-data", "-np", "2", sys.executable, SCRIPT, HOROVOD_SHARED_MEMORY="0")
    check_done(ended, 2)


def test_torchrun() -> None:
    check_done(output_of(*TORCHRUN, SCRIPT), 2)


def test_torchrun_starts_again_with_the_store_that_has_keys_of_the_starts_before() -> None:
    script = str(Path(SCRIPT).with_name("restarted.py"))
    check_done(output_of(*TORCHRUN, "--max-restarts", "3", script, "4"), 2)


def test_encryption_without_a_job_is_refused() -> None:
    code, output = output_of(*TORCHRUN, SCRIPT, HOROVOD_ENCRYPT_DATA="1")
    assert code != 0
    assert "start the script by horovodrun --encrypt-data" in output, output


def test_mpirun_of_open_mpi() -> None:
    ended = output_of(*MPIRUN, sys.executable, SCRIPT)
    check_done(ended, 2)
    assert "horovod" not in ended[1], ended[1]


def test_mpirun_of_mpich() -> None:
    check_done(output_of("mpiexec.hydra", "-np", "3", sys.executable, SCRIPT), 3)


def test_mpirun_encrypts() -> None:
    """Processes of a launch are a job, and have its secret."""
    check_done(output_of(*MPIRUN, sys.executable, SCRIPT, HOROVOD_ENCRYPT_DATA="1", HOROVOD_SHARED_MEMORY="0"), 2)


def test_ranks_of_mpirun_are_known_before_a_group_is_made() -> None:
    # In one write: lines of two ranks must not mix.
    ranks = "print('{RANK} {WORLD_SIZE} {LOCAL_RANK}\\n'.format(**os.environ), end='')"
    code, output = output_of(*MPIRUN, sys.executable, "-c", f"import os, horovod.torch.distributed; {ranks}")
    assert (code, sorted(output.splitlines())) == (0, ["0 2 0", "1 2 1"]), output


def test_a_process_of_mpirun_that_fails_is_named() -> None:
    fails = "dist.barrier(); 1 // dist.get_rank(); dist.barrier()"
    script = f"import torch.distributed as dist, horovod.torch.distributed; dist.init_process_group('hvd'); {fails}"
    code, output = output_of(*MPIRUN, sys.executable, "-c", script)
    assert code == 1
    assert "ZeroDivisionError" in output, output
    assert "horovod-rendezvousd: rank 0 on host task0 failed: exit code 1" in output, output


def test_addresses_of_the_user_are_kept() -> None:
    """The processes do not become a job if MASTER_ADDR is set: then torch's own rendezvous goes to that address."""
    script = "import torch.distributed as dist, horovod.torch.distributed as hvd; dist.init_process_group('hvd')"
    code, output = output_of(*MPIRUN, sys.executable, "-c", script, MASTER_ADDR="127.0.0.1")
    assert code == 1
    assert "environment variable MASTER_PORT expected" in output, output
