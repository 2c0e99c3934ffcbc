"""However a job is interrupted, it leaves no process, port, shared memory or file behind on any host."""

import os
import signal
from pathlib import Path

import pytest

from processes import program

SCRIPTS = Path(__file__).resolve().parent / "scripts"


def start_holding_job(cluster, *arguments):
    job = cluster["launcher"].start_command(
        ["horovodrun", "-np", "4", "-H", "a:2,b:2", "python", SCRIPTS / "hold.py", *arguments]
    )
    job.stdout.wait_for("holding", 90, count=4)
    for host in ("a", "b"):
        assert len(cluster[host].find("sleep 100000")) == 2
    return job


@pytest.mark.parametrize("number, exit_code", [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_signal_to_horovodrun(cluster, number, exit_code):
    job = start_holding_job(cluster)
    job.signal(number)
    assert job.wait() == exit_code, job.everything()
    assert cluster.leftovers() == []


def test_second_ctrl_c_ends_workers_that_ignore_the_first(cluster):
    job = start_holding_job(cluster, "stubborn")
    job.signal(signal.SIGINT)
    job.stderr.wait_for("(?i)again|interrupt|ctrl-c|stopp")
    job.signal(signal.SIGINT)
    assert job.wait() == 130, job.everything()
    assert cluster.leftovers() == []


def test_ctrl_c_once_ends_stubborn_workers_too(cluster):
    job = start_holding_job(cluster, "stubborn")
    job.signal(signal.SIGINT)
    assert job.wait(60) == 130, job.everything()
    assert cluster.leftovers() == []


def test_ctrl_c_while_hosts_are_being_reached(cluster):
    cluster["b"].cut()
    job = cluster["launcher"].start_command(
        ["horovodrun", "--verbose", "-np", "4", "-H", "a:2,b:2", "python", SCRIPTS / "hold.py"]
    )
    job.stderr.wait_for(".")  # it has begun
    job.signal(signal.SIGINT)
    assert job.wait() == 130, job.everything()
    assert cluster.leftovers() == []


def test_kill_9_of_horovodrun(cluster):
    job = start_holding_job(cluster)
    job.signal(signal.SIGKILL)
    assert job.wait() == -signal.SIGKILL
    assert cluster.leftovers() == []


def test_kill_9_of_horovodrun_with_stubborn_workers(cluster):
    job = start_holding_job(cluster, "stubborn")
    job.signal(signal.SIGKILL)
    assert job.wait() == -signal.SIGKILL
    assert cluster.leftovers() == []


def test_kill_9_of_an_agent(cluster):
    job = start_holding_job(cluster)
    for pid in cluster["b"].find("horovod-agent"):
        if program(pid).endswith("horovod-agent"):
            os.kill(pid, signal.SIGKILL)
            break
    else:
        raise AssertionError("no agent found")
    assert job.wait() not in (0, 130), job.everything()
    assert "host b" in job.stderr.text, job.everything()
    assert cluster.leftovers() == []


def test_kill_9_of_sshd(cluster):
    job = start_holding_job(cluster)
    cluster["b"].kill_sshd()
    assert job.wait() not in (0, 130), job.everything()
    assert "host b" in job.stderr.text, job.everything()
    assert cluster.leftovers() == []


def test_cut_network(cluster):
    job = start_holding_job(cluster)
    cluster["b"].cut()
    assert job.wait(60) not in (0, 130), job.everything()
    assert "host b" in job.stderr.text, job.everything()
    # sshd itself only notices by its own means that its session is dead; what must go is the job.
    assert [line for line in cluster.leftovers() if "sshd" not in line] == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_local_job_is_cleaned_up_too(cluster, number):
    host = cluster["a"]
    job = host.start_command(["horovodrun", "-np", "2", "python", SCRIPTS / "hold.py"])
    job.stdout.wait_for("holding", 90, count=2)
    job.signal(number)
    job.wait()
    assert host.leftovers() == []


def test_job_that_succeeds_leaves_nothing(cluster):
    result = cluster["launcher"].run(
        ["horovodrun", "-np", "4", "-H", "a:2,b:2", "python", SCRIPTS / "report_world.py"], timeout=120
    )
    assert result.returncode == 0, result.stderr
    assert cluster.leftovers() == []
