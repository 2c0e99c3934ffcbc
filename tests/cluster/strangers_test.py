"""Strangers that connect to a job's ports do not disturb it, neither while a world forms nor later."""

import signal
from pathlib import Path

SCRIPTS = Path(__file__).resolve().parent / "scripts"
RANKS = 4


def test_two_thousand_silent_strangers_at_every_port(cluster, tmp_path):
    crowds, ports = {}, {"a": 2, "b": 2, "launcher": 1}  # each rank's, and the daemon's
    for host in ports:
        crowds[host] = cluster[host].start_command(["python", "-u", SCRIPTS / "strangers.py", "2000"])
        crowds[host].stdout.wait_for("watching", 60)
    stop = tmp_path / "stop"
    job = cluster["launcher"].start_command(
        ["horovodrun", "-np", str(RANKS), "-H", "a:2,b:2", "python", SCRIPTS / "reduce_until.py", stop]
    )
    job.stdout.wait_for("joined", 120, count=RANKS)
    for host, crowd in crowds.items():
        crowd.stdout.wait_for(r"^2000 at \d+$", 60, count=ports[host])
    stop.touch()
    assert job.wait(120) == 0, job.everything()
    assert "sums" in job.stdout.text
    for crowd in crowds.values():
        crowd.signal(signal.SIGTERM)
        crowd.wait()
    assert cluster.leftovers() == []
