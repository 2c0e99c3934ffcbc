"""Names and addresses as real networks have them: names that say 127.0.1.1, or nothing, or something else than before; hosts without IPv4; hosts
with several interfaces, one of which has the same address on each host."""

import pytest

from elastic_job import FaultyJob, workers_on
from faults import kill
from static_job_test import SCRIPTS, run_job, worlds_of

LOCAL = "127.0.0.1 localhost\n::1 localhost\n"


def have_hosts_file(cluster, directory, text_of):
    """Gives each host a separate /etc/hosts."""
    for host in cluster:
        file = directory / f"hosts-of-{host.name}"
        file.write_text(text_of(host))
        host.put_over(file, "/etc/hosts")


def addresses(cluster, but=None):
    return "".join(f"{host.address} {host.name}\n" for host in cluster if host is not but)


@pytest.mark.parametrize("starter", ["launcher", "a"])
def test_hosts_whose_own_name_says_127_0_1_1(cluster, tmp_path, starter):
    """Debian's installer writes /etc/hosts so."""
    have_hosts_file(cluster, tmp_path, lambda host: f"{LOCAL}127.0.1.1 {host.name}\n{addresses(cluster, but=host)}")
    output = run_job(cluster, ["-np", "4", "-H", "a:2,b:2", "python", SCRIPTS / "report_world.py"], host=starter)
    assert [world["host"] for _, world in sorted(worlds_of(output).items())] == ["a", "a", "b", "b"]


def test_hosts_that_know_no_names(cluster, tmp_path):
    """Only who starts the job has to."""
    have_hosts_file(cluster, tmp_path, lambda host: LOCAL + (addresses(cluster) if host.name == "launcher" else ""))
    output = run_job(cluster, ["-np", "4", "-H", "a:2,b:2", "python", SCRIPTS / "report_world.py"])
    assert sorted(worlds_of(output)) == [0, 1, 2, 3]


def test_names_that_are_lost_while_the_job_runs(cluster, tmp_path):
    job = FaultyJob(cluster)
    job.wait_for_size(4)
    have_hosts_file(cluster, tmp_path, lambda host: LOCAL + f"10.77.0.99 {host.name}\n")
    job.wait_for_steps(3)
    job.begin_trouble()
    kill(workers_on(cluster["b"])[:1])
    job.wait_for_world_after(job.trouble[1])
    job.wait_for_size(4, 90)
    job.finish()


def test_name_that_is_unknown_is_one_line(cluster):
    result = cluster["launcher"].run(["horovodrun", "-np", "2", "-H", "a:1,nosuchhost:1", "true"])
    assert result.returncode != 0
    assert len([line for line in result.stderr.splitlines() if "nosuchhost" in line]) == 1, result.stderr
    assert "Traceback" not in result.stderr


def test_hosts_with_docker0(cluster):
    for host in cluster:
        commands = (
            "ip link add docker0 type bridge && ip address add 172.17.0.1/16 dev docker0 && ip link set docker0 up"
        )
        result = host.run(["sh", "-c", commands])
        assert result.returncode == 0, result.stderr
    output = run_job(cluster, ["-np", "4", "-H", "a:2,b:2", "python", SCRIPTS / "report_world.py"])
    assert sorted(worlds_of(output)) == [0, 1, 2, 3]
    assert "172.17" not in output


def test_hosts_without_ipv4(cluster, tmp_path):
    for host in cluster:
        host.use_ipv6_only()
    have_hosts_file(cluster, tmp_path, lambda host: "::1 localhost\n" + addresses(cluster))
    output = run_job(cluster, ["-np", "4", "-H", "a:2,b:2", "python", SCRIPTS / "report_world.py"])
    worlds = worlds_of(output)
    assert [world["host"] for _, world in sorted(worlds.items())] == ["a", "a", "b", "b"]
    script = SCRIPTS / "train_and_compare.py"
    run_job(cluster, ["-np", "2", "-H", "a:1,b:1", "python", script, tmp_path / "two", "3"])
    assert (tmp_path / "two").exists()
