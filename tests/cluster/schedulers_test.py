"""horovodrun within jobs of LSF, PBS and Grid Engine, whose commands are played by ssh: the variables and files of a job, and how each command
treats the words that it is given."""

import os
import re
from pathlib import Path

import pytest

from static_job_test import worlds_of

SCRIPTS = Path(__file__).resolve().parent / "scripts"
REPORT = ["python", SCRIPTS / "report_world.py"]

# As the manuals say: the words after the host are the command. Some versions have a shell read them, some do not.
WITH_SHELL = 'exec ssh "$host" "$@"\n'
AS_IT_IS = 'exec ssh "$host" "$(printf "%q " "$@")"\n'
HEADS = {
    "blaunch": 'host=$1; shift; : "${LSB_JOBID:?only within a job}"\n',
    "pbs_tmrsh": 'host=$1; shift; : "${PBS_NODEFILE:?only within a job}"\n',
    "qrsh": '[[ $1 == -inherit ]] || exit 9; host=$2; shift 2; : "${JOB_ID:?only within a job}"\n',
    "kubectl": '[[ "$1 $2 $4" == "exec -i --" ]] || exit 9; host=$3; shift 4\n',
    "run-on": "host=${1#--host=}; shift\n",
}


@pytest.fixture
def command(tmp_path):
    """Writes a command of a scheduler; returns the PATH to find it by."""

    def write(name, tail):
        directory = tmp_path / "bin"
        directory.mkdir()
        (directory / name).write_text("#!/bin/bash\n" + HEADS[name] + f'echo "$0 $host" >>{tmp_path}/calls\n' + tail)
        (directory / name).chmod(0o755)
        return directory

    return write


def run(cluster, tmp_path, path, arguments, env, code=0, host="a"):
    env = {"PATH": f"{path}:{os.environ['PATH']}", **env}
    result = cluster[host].run(["horovodrun", *arguments, *REPORT], env=env, directory=tmp_path)
    assert result.returncode == code, result.stdout + result.stderr
    return result


def places(result):
    return [world["host"] for _, world in sorted(worlds_of(result.stdout).items())]


def job(scheduler, tmp_path):
    """The variables of a job with 2 slots on a and 1 on b."""
    repeated, counted = tmp_path / "nodes", tmp_path / "pe"
    repeated.write_text("a\na\nb\n")
    counted.write_text("a 2 all.q@a <NULL>\nb 1 all.q@b <NULL>\n")
    return {
        "blaunch": {"LSB_JOBID": "7", "LSB_DJOB_HOSTFILE": str(repeated), "LSB_MCPU_HOSTS": "a 2 b 1"},
        "pbs_tmrsh": {"PBS_JOBID": "7.server", "PBS_NODEFILE": str(repeated)},
        "qrsh": {"JOB_ID": "7", "PE_HOSTFILE": str(counted)},
    }[scheduler]


@pytest.mark.parametrize("tail", [WITH_SHELL, AS_IT_IS], ids=["shell", "exec"])
@pytest.mark.parametrize("scheduler", ["blaunch", "pbs_tmrsh", "qrsh"])
def test_job_of_a_scheduler_needs_neither_np_nor_hosts(cluster, tmp_path, command, scheduler, tail):
    path = command(scheduler, tail)
    assert places(run(cluster, tmp_path, path, [], job(scheduler, tmp_path))) == ["a", "a", "b"]
    assert (tmp_path / "calls").read_text() == f"{path / scheduler} b\n"
    assert cluster.leftovers() == []


def test_lsf_starts_a_process_for_each_gpu(cluster, tmp_path, command):
    path = command("blaunch", WITH_SHELL)
    env = {"LSB_JOBID": "7", "LSB_MCPU_HOSTS": "a 20 b 20", "CUDA_VISIBLE_DEVICES": "0,1"}
    assert places(run(cluster, tmp_path, path, [], env)) == ["a", "a", "b", "b"]
    assert places(run(cluster, tmp_path, path, ["-np", "3"], env)) == ["a", "a", "b"]


def test_job_on_this_host_alone_calls_nothing(cluster, tmp_path, command):
    path = command("blaunch", "exit 9\n")
    assert places(run(cluster, tmp_path, path, [], {"LSB_JOBID": "7", "LSB_MCPU_HOSTS": "a 2"})) == ["a", "a"]
    assert not (tmp_path / "calls").exists()


def test_schedulers_command_that_is_missing_leaves_ssh(cluster, tmp_path):
    assert places(run(cluster, tmp_path, tmp_path, [], job("qrsh", tmp_path))) == ["a", "a", "b"]


def test_kubectl_reaches_pods_that_are_named(cluster, tmp_path, command):
    path = command("kubectl", AS_IT_IS)
    result = run(cluster, tmp_path, path, ["-np", "2", "-H", "a:1,b:1", "--launcher", "kubectl"], {}, host="launcher")
    assert places(result) == ["a", "b"]
    assert sorted((tmp_path / "calls").read_text().splitlines()) == [f"{path}/kubectl a", f"{path}/kubectl b"]


@pytest.mark.parametrize("tail", [WITH_SHELL, AS_IT_IS], ids=["shell", "exec"])
def test_any_command_with_the_hosts_name_in_it(cluster, tmp_path, command, tail):
    path = command("run-on", tail)
    arguments = ["-np", "2", "-H", "a:1,b:1", "--launcher", f"'{path}/run-on' --host={{host}}"]
    assert places(run(cluster, tmp_path, path, arguments, {}, host="launcher")) == ["a", "b"]
    assert cluster.leftovers() == []


def test_command_that_fails_is_named(cluster, tmp_path, command):
    path = command("blaunch", "echo 'Host b is not in the allocation' >&2; exit 255\n")
    result = run(cluster, tmp_path, path, [], job("blaunch", tmp_path), code=2)
    (line,) = result.stderr.splitlines()
    assert re.search(r"b: the blaunch session exited with code 255 .*Host b is not in the allocation", line)
