"""horovodrun within jobs of a real Slurm: hosts, processes and GPUs are the job's, srun reaches the nodes, on which no sshd runs."""

import re
import signal
import tempfile
from pathlib import Path

import pytest

from netns import Cluster
from processes import command_line, environment_of
from secrets_test import SECRET, workers_without_secrets
from slurm import Slurm
from static_job_test import worlds_of
from training_log import TrainingLog

SCRIPTS = Path(__file__).resolve().parent / "scripts"
REPORT = f"python {SCRIPTS / 'report_world.py'}"
DEVICES = "import os; print('sees', os.environ['HOROVOD_HOSTNAME'], os.environ.get('CUDA_VISIBLE_DEVICES'))"


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    return tmp_path_factory.mktemp("slurm")


@pytest.fixture(scope="module")
def cluster(directory):
    """Two nodes, and a host from which jobs are submitted; no node can be reached by SSH."""
    with Cluster(["a", "b", "login"], directory) as running:
        for name in "ab":
            running[name].kill_sshd()
        yield running


@pytest.fixture(scope="module")
def slurm(cluster, directory):
    return Slurm(cluster["login"], [cluster["a"], cluster["b"]], directory / "slurm", gpus=4)


@pytest.fixture
def work(directory):
    """A directory that all the hosts have, to submit a job from."""
    return Path(tempfile.mkdtemp(dir=directory))


def run_batch(slurm, work, options, command, code=0):
    """Returns the output of sbatch --wrap; checks its exit code."""
    job = slurm.submit([*options, "--wrap", command], work)
    assert job.wait(120).endswith(f" {code}:0"), job.output.text
    return (work / f"slurm-{job.number}.out").read_text()


def places(output):
    """The host of each rank."""
    return [world["host"] for _, world in sorted(worlds_of(output).items())]


def check_nothing_is_left(slurm, cluster):
    slurm.wait_until_idle(60)
    for name in "ab":
        assert cluster[name].find("horovod") == []


def test_batch_job_needs_neither_np_nor_hosts(slurm, cluster, work):
    output = run_batch(slurm, work, ["--nodes=2", "--ntasks-per-node=2"], f"horovodrun {REPORT}")
    assert places(output) == ["a", "a", "b", "b"]
    assert {world["size"] for world in worlds_of(output).values()} == {4}
    check_nothing_is_left(slurm, cluster)


@pytest.mark.parametrize(
    "options, hosts",
    [
        (["--nodes=2"], "a b"),
        (["--nodes=1", "--ntasks=3"], "a a a"),
        (["--nodes=2", "--gpus-per-node=2", "--mem-per-cpu=10", "--cpus-per-task=2"], "a a b b"),
        (["--nodes=2", "--ntasks-per-node=1", "--gres=gpu:2"], "a a b b"),
        (["--nodes=2", "--ntasks=4", "--gpus-per-task=1"], "a a a b"),
        (["--nodes=2", "--gpus=2"], "a b"),
    ],
    ids=lambda value: "_".join(value) if isinstance(value, list) else "",
)
def test_what_was_asked_for_decides_how_many_processes_there_are(slurm, work, options, hosts):
    output = run_batch(slurm, work, options, f"horovodrun {REPORT}")
    assert places(output) == hosts.split(), output


def test_np_takes_a_part_of_the_job_or_more_of_it(slurm, work):
    options = ["--nodes=2", "--ntasks-per-node=2"]
    assert places(run_batch(slurm, work, options, f"horovodrun -np 3 {REPORT}")) == ["a", "a", "b"]
    assert places(run_batch(slurm, work, ["--nodes=2"], f"horovodrun -np 4 {REPORT}")) == ["a", "a", "b", "b"]


def test_workers_see_the_gpus_that_slurm_gave_their_node(slurm, work):
    """All of them, although one task would get one only."""
    options = ["--nodes=2", "--ntasks-per-node=2", "--gpus-per-task=1"]
    output = run_batch(slurm, work, options, f'horovodrun python -c "{DEVICES}"')
    assert len(re.findall(r"sees a 0,1", output)) == 2, output
    assert len(re.findall(r"sees b 0,1", output)) == 2, output


def test_salloc_on_a_host_that_is_not_a_node(slurm, work):
    command = ["salloc", "--nodes=2", "--ntasks-per-node=2", "horovodrun", *REPORT.split()]
    result = slurm.run(command, work, timeout=120)
    assert result.returncode == 0, result.stdout + result.stderr
    assert places(result.stdout) == ["a", "a", "b", "b"]


def test_elastic_job_starts_an_agent_that_was_lost_again(slurm, cluster, work):
    flags = "--epochs 1000 --step-seconds 0.02"
    options = ["--nodes=2", "--ntasks-per-node=1", "--no-kill"]
    job = slurm.submit(
        [
            *options,
            "--wrap",
            f"exec horovodrun --min-np 1 python {SCRIPTS / 'elastic_train.py'} --framework numpy {flags}",
        ],
        work,
    )
    log = TrainingLog(job.output)
    log.wait_until(lambda: log.trains_with(2), 60, "a world of 2")
    world = log.newest_world()
    cluster["b"].run(["pkill", "-KILL", "-f", "horovod-agent --stdio"])
    log.wait_until(lambda: log.has_trained_with(1, after=world), 60, "a world of 1")
    log.wait_until(lambda: log.trains_with(2), 60, "a world of 2 again")
    slurm.run(["scancel", job.number], work)
    check_nothing_is_left(slurm, cluster)


def test_requeued_job_continues_from_its_checkpoint(slurm, cluster, work):
    flags = f"--epochs 1000 --checkpoint-dir {work / 'checkpoints'}"
    options = ["--nodes=2", "--ntasks-per-node=1", "--requeue", "--open-mode=append"]
    job = slurm.submit(
        [
            *options,
            "--wrap",
            f"exec horovodrun --min-np 1 python {SCRIPTS / 'elastic_train.py'} --framework numpy {flags}",
        ],
        work,
    )
    log = TrainingLog(job.output)
    log.wait_until(lambda: log.last_step() >= 10, 90, "step 10")
    slurm.run(["scontrol", "requeue", job.number], work)
    slurm.wait_for_controller(f"Requeuing JobId={job.number}", 60)
    slurm.start_soon(job, 60)
    log.wait_until(lambda: any(entry["steps"] > 0 and entry["size"] == 2 for entry in log.all("rank")), 90, "going on")
    slurm.run(["scancel", job.number], work)
    check_nothing_is_left(slurm, cluster)


def test_dry_run_tells_hosts_and_launcher(slurm, work):
    output = run_batch(slurm, work, ["--nodes=2", "--ntasks-per-node=2"], f"horovodrun --dry-run {REPORT}")
    assert re.search(r"on the hosts of Slurm's job \d+, a slot for each task", output)
    assert re.search(r"ranks 0-1 +a \(this machine\)\n +ranks 2-3 +b \(over srun\)", output)


def test_worker_that_fails_ends_the_job_with_its_code(slurm, cluster, work):
    command = f"horovodrun python {SCRIPTS / 'fail.py'} exit 3"
    output = run_batch(slurm, work, ["--nodes=2", "--ntasks-per-node=2"], command, code=3)
    assert re.search(r"rank 3 .*b.*", output), output
    check_nothing_is_left(slurm, cluster)


@pytest.mark.parametrize(
    "arguments, message",
    [
        ("-np 2 -H a:1,login:1 --launcher srun", r"login: .*this Slurm job has no such node"),
        ("--launcher 'no-such-command {host}'", r"b: .*no-such-command"),
    ],
)
def test_mistakes_are_reported_in_one_line(slurm, work, arguments, message):
    output = run_batch(slurm, work, ["--nodes=2"], f"horovodrun {arguments} {REPORT}", code=2)
    lines = [line for line in output.splitlines() if line.strip()]
    assert len(lines) == 1 and re.search(message, lines[0]), output


def test_tasks_of_a_step_are_refused(slurm, work):
    result = slurm.run(["srun", "--ntasks=2", "horovodrun", "python", "train.py"], work, timeout=120)
    assert result.returncode == 2
    assert len(re.findall(r"error: srun has started horovodrun 2 times", result.stderr)) == 2


def start_holding_job(slurm, work):
    job = slurm.submit(
        ["--nodes=2", "--ntasks-per-node=2", "--wrap", f"exec horovodrun python {SCRIPTS / 'hold.py'}"], work
    )
    job.output.wait_for("holding", 120, count=4)
    return job


def horovodrun_of(cluster):
    (pid,) = [pid for pid in cluster["a"].find("horovodrun") if command_line(pid).startswith("horovodrun ")]
    return pid


def test_no_secret_is_seen(slurm, cluster, work):
    job = start_holding_job(slurm, work)
    users_own = set(environment_of(horovodrun_of(cluster)).decode(errors="replace").split("\0"))
    assert workers_without_secrets([cluster["a"]], users_own, "hold.py") == 2
    for pid in cluster["b"].processes():
        assert not SECRET.search(command_line(pid)), command_line(pid)
    slurm.run(["scancel", job.number], work)
    check_nothing_is_left(slurm, cluster)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_nothing_stays_on_any_node_when_horovodrun_is_ended(slurm, cluster, work, number):
    start_holding_job(slurm, work)
    cluster["a"].run(["kill", f"-{int(number)}", str(inner_pid(horovodrun_of(cluster)))])
    check_nothing_is_left(slurm, cluster)


def inner_pid(pid):
    """The process id within the host's namespace."""
    return re.search(r"^NSpid:.*\s(\d+)$", Path(f"/proc/{pid}/status").read_text(), re.M)[1]
