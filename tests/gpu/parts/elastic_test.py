"""Elastic jobs on the GPU: a rank that is killed or stopped at the worst moment."""

import re
import sys

import pytest

RANKS = 3


def logs(folder):
    """The lines of each process's log."""
    return {path.name: path.read_text().splitlines() for path in folder.glob("rank-*")}


def moments(lines, pattern):
    return [int(line.rpartition(" ")[2]) for line in lines if re.match(pattern, line)]


def milliseconds_until_next_step(processes):
    """From the death to the end of the first step of a smaller world, on the survivor that was last."""
    (death,) = [moment for lines in processes.values() for moment in moments(lines, "dies ")]
    nexts = [moments(lines, f"step \\d+ of {RANKS - 1} ") for lines in processes.values()]
    return (max(steps[0] for steps in nexts if steps) - death) / 1e6


@pytest.mark.parametrize("point", ["allreduce", "backward", "commit", "stop"])
def test_survivors_go_on_and_a_newcomer_joins(horovodrun, job, tmp_path, figure, leaves_no_memory, point):
    result = horovodrun.run(
        *("-np", RANKS, "--min-np", RANKS - 1, "--max-np", RANKS, "-H", f"localhost:{RANKS}"),
        *(sys.executable, job("killed.py"), point, tmp_path, RANKS),
        timeout=75,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    done = re.findall(r"done at (\d+) with (\d)", result.stdout)
    assert len(done) == RANKS and len(set(done)) == 1 and done[0][1] == str(RANKS), result.stdout
    assert "go through host memory" not in result.stderr
    figure(
        f"{point}: from the signal to the survivors' next step",
        round(milliseconds_until_next_step(logs(tmp_path)), 1),
        "ms",
    )
