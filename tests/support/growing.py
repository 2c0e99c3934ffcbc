"""A job of one worker whose script asks for a second slot."""

import sys


def run_growing(horovodrun, tmp_path, script):
    """Runs the script with the file of the hosts as its argument. Returns the lines about weights, one a rank."""
    hosts = tmp_path / "hosts"
    hosts.write_text("localhost:1\n")
    discovery = tmp_path / "discovery.sh"
    discovery.write_text(f"#!/bin/sh\ncat {hosts}\n")
    discovery.chmod(0o755)
    sizes = ["-np", "1", "--min-np", "1", "--max-np", "2", "--host-discovery-script", discovery]
    result = horovodrun.run(*sizes, sys.executable, script, hosts, env={"OMP_NUM_THREADS": "1"}, timeout=120)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "on host localhost failed" not in result.stderr, result.stderr
    assert horovodrun.processes_left() == []
    return [line.split(">:", 1)[1] for line in result.stdout.splitlines() if ">:weights" in line]
