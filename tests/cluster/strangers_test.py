"""Who comes to a job's ports and does not belong to it is nobody: neither while a world forms nor later."""

import signal
from pathlib import Path

SCRIPTS = Path(__file__).resolve().parent / "scripts"
RANKS = 4


def test_two_thousand_silent_strangers_at_every_port(cluster, tmp_path):
    crowds = {}
    for host in ("a", "b"):
        crowds[host] = cluster[host].start_command(["python", "-u", SCRIPTS / "strangers.py", "2000"])
        crowds[host].stdout.wait_for("watching", 60)
    stop = tmp_path / "stop"
    job = cluster["launcher"].start_command(["horovodrun", "-np", str(RANKS), "-H", "a:2,b:2", "python", SCRIPTS / "reduce_until.py", stop])
    job.stdout.wait_for("joined", 120, count=RANKS)
    # A door of each rank, two on each host.
    for crowd in crowds.values():
        crowd.stdout.wait_for(r"^2000 at \d+$", 60, count=2)
    stop.touch()
    assert job.wait(120) == 0, job.everything()
    assert "sums" in job.stdout.text
    for crowd in crowds.values():
        crowd.signal(signal.SIGTERM)
        crowd.wait(30)
    assert cluster.leftovers() == []
