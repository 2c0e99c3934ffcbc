"""horovod.run over SSH: the function and its results travel between hosts that share no folder for it."""

from pathlib import Path

SCRIPT = Path(__file__).resolve().parent / "scripts" / "run_function.py"


def test_function_runs_on_other_hosts(cluster):
    result = cluster["launcher"].run(["python", SCRIPT, "a:1,b:1"], timeout=120)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "returned [('a', 0, 3), ('b', 10, 3)]" in result.stdout
    assert cluster.leftovers() == []
