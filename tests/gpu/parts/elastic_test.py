"""Elastic jobs on the GPU: a rank that is killed or stopped at the worst moment."""

import re
import sys

import pytest

RANKS = 3


def logs(folder):
    """The lines of each process's log."""
    return {path.name: path.read_text().splitlines() for path in folder.glob("rank-*")}


def moments(lines, word):
    return [int(line.rpartition(" ")[2]) for line in lines if line.startswith(word)]


def recovery(processes):
    """Milliseconds from the death to the survivors' next world, and from there to the end of its first step, which connects NCCL again: each
    those of the survivor that was last."""
    (death,) = [moment for lines in processes.values() for moment in moments(lines, "dies ")]
    worlds, steps = [], []
    for lines in processes.values():
        later = [moment for moment in moments(lines, "world ") if moment > death]
        if later and moments(lines, "world ")[0] < death:  # a survivor
            worlds.append(later[0])
            steps.append(next(moment for moment in moments(lines, "step ") if moment > later[0]))
    assert len(worlds) == RANKS - 1, processes
    return (max(worlds) - death) / 1e6, (max(steps) - max(worlds)) / 1e6


@pytest.mark.parametrize("point", ["allreduce", "backward", "commit", "stop"])
def test_survivors_continue_and_a_newcomer_joins(horovodrun, job, tmp_path, figure, leaves_no_memory, point):
    result = horovodrun.run(
        *("-np", RANKS, "--min-np", RANKS - 1, "--max-np", RANKS, "-H", f"localhost:{RANKS}"),
        *(sys.executable, job("killed.py"), point, tmp_path, RANKS),
        timeout=55,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    done = re.findall(r"done at (\d+) with (\d)", result.stdout)
    assert len(done) == RANKS and len(set(done)) == 1 and done[0][1] == str(RANKS), result.stdout
    assert "go through host memory" not in result.stderr
    world, step = recovery(logs(tmp_path))
    figure(f"{point}: from the signal to the survivors' next step", round(world + step, 1), "ms")
    figure(f"{point}: of this, until they were in the next world", round(world, 1), "ms")
