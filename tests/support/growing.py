"""A job whose script asks for one more slot."""

import sys


def run_growing(horovodrun, tmp_path, script, *arguments, count=1):
    """Runs the script with `count` workers at first; its first argument is the file of the hosts. Returns the lines about weights, one a rank."""
    hosts = tmp_path / "hosts"
    hosts.write_text(f"localhost:{count}\n")
    discovery = tmp_path / "discovery.sh"
    discovery.write_text(f"#!/bin/sh\ncat {hosts}\n")
    discovery.chmod(0o755)
    sizes = ["-np", str(count), "--min-np", "1", "--max-np", str(count + 1), "--host-discovery-script", discovery]
    result = horovodrun.run(
        *sizes, sys.executable, script, hosts, *arguments, env={"OMP_NUM_THREADS": "1"}, timeout=120
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert "on host localhost failed" not in result.stderr, result.stderr
    assert horovodrun.processes_left() == []
    return [line.split(">:", 1)[1] for line in result.stdout.splitlines() if ">:weights" in line]
