"""horovodrun --elastic-restart: scripts for torchrun that know nothing of Horovod, as elastic jobs."""

import os
import re
import signal
import sys
from pathlib import Path

import pytest

from joinable import Joinable

JOB = Path(__file__).resolve().parent / "jobs" / "restarted.py"
ALONE = {"OMP_NUM_THREADS": "1"}
RESTART = ["--elastic-restart"]


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "job"
    made.mkdir()
    return made


def starts(text, restart):
    """(rank, size, step, port, pid) of each rank of that restart."""
    found = re.findall(rf"rank (\d+) of (\d+) restart {restart} step (\d+) port (\d+) pid (\d+)$", text, re.M)
    return sorted(tuple(map(int, each)) for each in found)


def wait_for_ranks(stream, size, restart):
    pattern = rf"rank \d+ of {size} restart {restart} step \d+ port \d+ pid \d+$"
    stream.wait_for(pattern, 120, count=size)
    return starts(stream.text, restart)


def test_a_script_that_ends_well_is_started_once(horovodrun, folder):
    result = horovodrun.run(*RESTART, "-np", 3, "--min-np", 1, sys.executable, JOB, 5, folder, env=ALONE)
    assert result.returncode == 0, result.stdout + result.stderr
    assert [place[:3] for place in starts(result.stdout, 0)] == [(rank, 3, 0) for rank in range(3)]
    assert len({place[3] for place in starts(result.stdout, 0)}) == 1
    assert result.stdout.count("of 3 done at step 5") == 3 and not starts(result.stdout, 1)


def parent_of(pid):
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


@pytest.mark.parametrize("killed", ["command", "its worker"])
def test_a_killed_rank_starts_all_again_from_the_file(horovodrun, folder, killed):
    job = horovodrun.start(*RESTART, "-np", 3, "--min-np", 2, sys.executable, JOB, 5, folder, "wait", env=ALONE)
    before = wait_for_ranks(job.stdout, 3, 0)
    job.stdout.wait_for("rank 0 waits at step 3$", 120)
    os.kill(before[1][4] if killed == "command" else parent_of(before[1][4]), signal.SIGKILL)
    job.stdout.wait_for(r"rank \d+ of [23] restart 1 step", 120, count=2)
    (folder / "go").touch()
    assert job.wait(120) == 0, job.everything()
    after = starts(job.stdout.text, 1)
    assert [place[0] for place in after] == list(range(after[0][1])) and after[0][1] in (2, 3)
    assert {place[4] for place in before}.isdisjoint({place[4] for place in after})
    assert before[0][3] != after[0][3], "a fresh MASTER_PORT"
    assert {place[2] for place in after} == {3}
    assert len(re.findall("done at step 5$", job.stdout.text, re.M)) in (2, 3)
    assert "killed by signal 9 (SIGKILL)" in job.stderr.text and "1 failure (" in job.stderr.text, job.everything()


def test_a_new_host_starts_all_again(horovodrun, folder, tmp_path):
    hosts, script = tmp_path / "hosts", tmp_path / "hosts.sh"
    script.write_text(f"#!/bin/sh\ncat {hosts}\n")
    script.chmod(0o755)
    hosts.write_text("localhost:1\n")
    sizes = ["-np", 1, "--min-np", 1, "--max-np", 2, "--host-discovery-script", script]
    job = horovodrun.start(*RESTART, *sizes, sys.executable, JOB, 5, folder, "wait", env=ALONE)
    wait_for_ranks(job.stdout, 1, 0)
    (tmp_path / "more").write_text("localhost:2\n")
    os.replace(tmp_path / "more", hosts)
    wait_for_ranks(job.stdout, 2, 1)
    (folder / "go").touch()
    assert job.wait(120) == 0, job.everything()
    assert job.stdout.text.count("of 2 done at step 5") == 2
    assert "failure" not in job.stderr.text, job.everything()


def test_a_script_that_always_fails_ends_the_job(horovodrun, folder):
    sizes = ["-np", 2, "--min-np", 1, "--max-failures-in-a-row", 2]
    result = horovodrun.run(*RESTART, *sizes, sys.executable, JOB, 5, folder, "fail", env=ALONE, timeout=180)
    assert result.returncode == 7, result.stdout + result.stderr
    assert "2 failures in a row" in result.stderr and "exit code 7" in result.stderr, result.stderr
    assert starts(result.stdout, 1) and not starts(result.stdout, 2)


def test_a_rank_that_was_done_starts_again_with_the_others(horovodrun, tmp_path):
    script = tmp_path / "script.sh"
    script.write_text(
        f"""
echo rank $RANK of restart $TORCHELASTIC_RESTART_COUNT of at most $TORCHELASTIC_MAX_RESTARTS
[ $RANK != 0 ] || touch {tmp_path}/done
[ $RANK = 0 ] || until [ -e {tmp_path}/done ]; do :; done
[ $RANK = 0 ] || [ $TORCHELASTIC_RESTART_COUNT != 0 ] || exit 3
"""
    )
    result = horovodrun.run(*RESTART, "-np", 2, "--min-np", 2, "--max-failures", "5/1m", "sh", script)
    assert result.returncode == 0, result.stdout + result.stderr
    said = {line.split(">:")[1] for line in result.stdout.splitlines()}
    assert said == {f"rank {rank} of restart {count} of at most 5" for rank in (0, 1) for count in (0, 1)}


def told_by(line):
    """(prefix's rank, rank, local rank) of a line of the script below."""
    return tuple(map(int, re.fullmatch(r"\[(\d+)\]<stdout>:rank (\d+) local (\d+) restart \d+", line).groups()))


@pytest.mark.parametrize("size", [3, 2], ids=["replaced", "not replaced"])
def test_the_ranks_of_a_host_follow_its_local_ranks_and_so_does_the_output(horovodrun, tmp_path, size):
    """Rank 0 fails. Its slot gets another worker, or rests."""
    script, files = tmp_path / "script.sh", tmp_path / "files"
    script.write_text(
        f"""
echo rank $RANK local $LOCAL_RANK restart $TORCHELASTIC_RESTART_COUNT
[ $TORCHELASTIC_RESTART_COUNT = 0 ] || exit 0
printf "rank $RANK has not ended this"
touch {tmp_path}/$RANK
until [ -e {tmp_path}/0 ] && [ -e {tmp_path}/1 ] && [ -e {tmp_path}/2 ]; do :; done
[ $RANK != 0 ] || exit 3
while :; do :; done
"""
    )
    rests = [] if size == 3 else ["--blacklist-cooldown-range", 1000, 1000]
    sizes = ["-np", 3, "--min-np", size, *rests]
    result = horovodrun.run(*RESTART, *sizes, "--output-filename", files, "sh", script)
    assert result.returncode == 0, result.stdout + result.stderr
    lines = result.stdout.splitlines()
    for restart, number in ((0, 3), (1, size)):
        told = sorted(told_by(line) for line in lines if line.endswith(f"restart {restart}"))
        assert told == [(rank, rank, rank) for rank in range(number)], result.stdout
    for rank in range(3):
        assert f"[{rank}]<stdout>:rank {rank} has not ended this" in lines
        text = (files / f"rank.{rank}" / "stdout").read_text()
        assert re.findall(r"rank (\d)", text) == [str(rank)] * (3 if rank < size else 2), text


def test_lost_work_is_not_counted_in_commits(horovodrun, tmp_path):
    script = tmp_path / "script.sh"
    script.write_text("[ $RANK = 0 ] || exit 3\nwhile :; do :; done\n")
    sizes = ["-np", 2, "--min-np", 2, "--max-failures-in-a-row", 2]
    result = horovodrun.run(*RESTART, *sizes, "sh", script, timeout=180)
    assert result.returncode == 3 and "2 failures in a row, each soon after the start" in result.stderr, result.stderr
    assert "commit" not in result.stderr and " lost" not in result.stderr, result.stderr


def test_a_command_that_ignores_sigterm_is_killed(horovodrun, tmp_path):
    script = tmp_path / "script.sh"
    script.write_text(
        f"""
echo rank $RANK restart $TORCHELASTIC_RESTART_COUNT pid $$
[ $TORCHELASTIC_RESTART_COUNT = 0 ] || exit 0
trap '' TERM
touch {tmp_path}/rank$RANK
until [ -e {tmp_path}/rank0 ] && [ -e {tmp_path}/rank1 ]; do :; done
[ $RANK = 0 ] || exit 3
while :; do :; done
"""
    )
    result = horovodrun.run(*RESTART, "-np", 2, "--min-np", 2, "sh", script)
    assert result.returncode == 0, result.stdout + result.stderr
    assert len(re.findall(r"restart 1 pid", result.stdout)) == 2, result.stdout


def test_sigterm_ends_the_job(horovodrun, folder):
    job = horovodrun.start(*RESTART, "-np", 2, "--min-np", 1, sys.executable, JOB, 5, folder, "wait", env=ALONE)
    wait_for_ranks(job.stdout, 2, 0)
    job.signal(signal.SIGTERM)
    assert job.wait(120) == 143, job.everything()
    assert not starts(job.stdout.text, 1) and not horovodrun.processes_left()


@pytest.mark.parametrize("drained", [0, 1])
def test_agents_that_join(folder, tmp_path, drained):
    """With a daemon: one of two hosts is drained."""
    joinable = Joinable(tmp_path)
    try:
        daemon, address = joinable.start_daemon("token", "--np", "2", "--min-np", "1")
        join = ["horovod-agent", "--join", address, "--token-file", "token", "--elastic-restart"]
        script = ["--", sys.executable, JOB, 5, folder, "wait"]
        hosts = [joinable.start(*join, "--host", name, *script) for name in "ab"]
        for host in hosts:
            host.stdout.wait_for("of 2 restart 0", 120)
        leaver = hosts.pop(drained)
        leaver.signal(signal.SIGTERM)
        hosts[0].stdout.wait_for(r"\[0\]<stdout>:rank 0 of 1 restart 1 step", 120)
        assert leaver.wait() == 0, leaver.everything()
        (folder / "go").touch()
        assert hosts[0].wait(120) == 0 and daemon.wait() == 0, hosts[0].everything() + daemon.everything()
    finally:
        (folder / "go").touch()
        joinable.close()


def test_an_agent_that_joins_a_job_that_encrypts_sends_no_clear_text(folder, tmp_path):
    joinable = Joinable(tmp_path)
    try:
        sizes = ["--np", "1", "--min-np", "1", "--max-failures-in-a-row", "1"]
        daemon, address = joinable.start_daemon("token", *sizes, "--encrypt-data")
        join = ["horovod-agent", "--join", address, "--token-file", "token", "--elastic-restart"]
        agent = joinable.start(*join, "--", sys.executable, JOB, 5, folder)
        assert agent.wait(120) != 0 and daemon.wait(120) != 0
        assert "the job encrypts (--encrypt-data), and nothing would encrypt" in agent.everything()
        assert not starts(agent.stdout.text, 0)
    finally:
        joinable.close()


@pytest.mark.parametrize(
    "options, said",
    [
        (["-np", 2], "--elastic-restart is for elastic jobs: give --min-np, --max-np or --host-discovery-script"),
        (["-np", 2, "--min-np", 1, "--no-torch-env"], "--elastic-restart needs torchrun's variables"),
        (["-np", 2, "--min-np", 1, "--commit-copy-mbit", 10], "--elastic-restart has no commits"),
        (["-np", 2, "--min-np", 1, "--encrypt-data"], "--elastic-restart leaves the ranks' groups to the script"),
        (["-np", 2, "--min-np", 1, "--handover", 3], "--elastic-restart starts a command, and horovod.run"),
    ],
)
def test_options_without_a_meaning_are_refused(horovodrun, options, said):
    result = horovodrun.run(*RESTART, *options, "true")
    assert result.returncode == 2 and result.stderr.count("\n") == 1, result.stderr
    assert said in result.stderr


def test_a_missing_command_is_one_line(horovodrun):
    result = horovodrun.run(*RESTART, "-np", 1, "--min-np", 1, "no-such-command")
    assert result.returncode != 0 and "no-such-command" in result.stderr and "--restarter" not in result.stderr
