"""Jobs on this machine, as a user sees them: exit codes, output, files, environment."""

import json
import os
import re
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest

JOBS = Path(__file__).resolve().parent / "jobs"
SHELL_PER_RANK = 'echo "out $HOROVOD_RANK of $HOROVOD_SIZE"; echo "err $HOROVOD_RANK" >&2'


def test_success_is_exit_code_0_and_lines_have_their_rank(horovodrun):
    result = horovodrun.run("-np", "2", "sh", "-c", SHELL_PER_RANK)
    assert result.returncode == 0, result.stderr
    assert sorted(result.stdout.splitlines()) == ["[0]<stdout>:out 0 of 2", "[1]<stdout>:out 1 of 2"]
    assert sorted(result.stderr.splitlines()) == ["[0]<stderr>:err 0", "[1]<stderr>:err 1"]
    assert horovodrun.processes_left() == []


@pytest.mark.parametrize(
    "script, code, meaning",
    [("exit 3", 3, "exit code 3"), ("kill -9 $$", 137, "SIGKILL"), ("kill -SEGV $$", 139, "SIGSEGV")],
)
def test_exit_code_is_that_of_the_first_failure(horovodrun, script, code, meaning):
    result = horovodrun.run(
        "-np", "2", "sh", "-c", f'if [ $HOROVOD_RANK = 1 ]; then echo "last words" >&2; {script}; fi; exec sleep 1000'
    )
    assert result.returncode == code
    assert re.search(r"rank 1 on host localhost", result.stderr)
    assert meaning in result.stderr
    assert re.search(r"^(?!\[1\]).*last words", result.stderr, re.M), result.stderr
    assert horovodrun.processes_left() == []


def test_ctrl_c(horovodrun):
    job = horovodrun.start("-np", "2", "sh", "-c", "echo up; exec sleep 1000")
    job.stdout.wait_for("up", count=2)
    job.signal(signal.SIGINT)
    assert job.wait() == 130
    assert horovodrun.processes_left() == []


def test_grandchildren_do_not_outlive_the_job(horovodrun):
    result = horovodrun.run("-np", "2", "sh", "-c", "setsid sleep 1000 & sleep 1000 & exit 0", timeout=60)
    assert result.returncode == 0, result.stderr
    assert horovodrun.processes_left() == []


def test_output_files(horovodrun, tmp_path):
    result = horovodrun.run("-np", "2", "--output-filename", "logs", "sh", "-c", SHELL_PER_RANK)
    assert result.returncode == 0, result.stderr
    assert "[1]<stdout>:out 1 of 2" in result.stdout
    written = {str(path.relative_to(tmp_path)): path.read_text() for path in tmp_path.glob("logs/*/*")}
    assert written == {
        f"logs/rank.{rank}/{name}": f"[{rank}]<{name}>:{text}\n"
        for rank in (0, 1)
        for name, text in (("stdout", f"out {rank} of 2"), ("stderr", f"err {rank}"))
    }


def test_only_some_ranks_on_the_terminal(horovodrun, tmp_path):
    arguments = ["-np", "3", "--ranks-filter", "0,2", "--output-filename", "logs"]
    result = horovodrun.run(*arguments, "sh", "-c", SHELL_PER_RANK)
    assert result.returncode == 0, result.stderr
    assert sorted(result.stdout.splitlines()) == ["[0]<stdout>:out 0 of 3", "[2]<stdout>:out 2 of 3"]
    assert sorted(result.stderr.splitlines()) == ["[0]<stderr>:err 0", "[2]<stderr>:err 2"]
    assert (tmp_path / "logs/rank.1/stdout").read_text() == "[1]<stdout>:out 1 of 3\n"


def test_hidden_rank_that_fails_is_explained(horovodrun):
    script = "[ $HOROVOD_RANK = 0 ] || { echo the cause >&2; exit 3; }; exec sleep 1000"
    result = horovodrun.run("-np", "2", "--ranks-filter", "0", "sh", "-c", script)
    assert result.returncode == 3
    assert "[1]<stderr>" not in result.stderr
    assert "| the cause" in result.stderr and "rank 1 on host localhost" in result.stderr


def test_automatic_number_of_processes(horovodrun):
    # Without GPUs, which a test machine may have.
    cores = str(len(os.sched_getaffinity(0)))
    alone = horovodrun.run("-np", "auto", "--dry-run", "true", env={"CUDA_VISIBLE_DEVICES": ""})
    assert alone.returncode == 0, alone.stderr
    assert int(alone.stdout.split()[0]) <= int(cores)
    slots = horovodrun.run("-np", "auto", "-H", "localhost:3", "sh", "-c", SHELL_PER_RANK)
    assert slots.returncode == 0, slots.stderr
    assert len(slots.stdout.splitlines()) == 3


def test_module(horovodrun, tmp_path):
    (tmp_path / "package").mkdir()
    (tmp_path / "package/train.py").write_text("import sys; print(__name__, *sys.argv[1:])")
    result = horovodrun.run("-np", "2", "-m", "package.train", "--lr", "1")
    assert result.returncode == 0, result.stderr
    assert sorted(result.stdout.splitlines()) == ["[0]<stdout>:__main__ --lr 1", "[1]<stdout>:__main__ --lr 1"]


def test_config_file_describes_the_job(horovodrun, tmp_path):
    (tmp_path / "job.yaml").write_text("job: {np: 2, hosts: 'localhost:3'}\noutput: {filename: logs}\n")
    result = horovodrun.run("--config-file", "job.yaml", "sh", "-c", SHELL_PER_RANK)
    assert result.returncode == 0, result.stderr
    assert len(result.stdout.splitlines()) == 2 and (tmp_path / "logs/rank.1/stdout").exists()
    more = horovodrun.run("--config-file", "job.yaml", "-np", "3", "sh", "-c", SHELL_PER_RANK)
    assert len(more.stdout.splitlines()) == 3


def test_output_files_of_one_process_and_of_many(horovodrun, tmp_path):
    assert horovodrun.run("-np", "1", "--output-filename", "one", "true").returncode == 0
    assert (tmp_path / "one/rank.0/stdout").exists()
    assert horovodrun.run("-np", "11", "--output-filename", "many", "true").returncode == 0
    assert (tmp_path / "many/rank.00/stdout").exists() and (tmp_path / "many/rank.10/stderr").exists()


def test_timestamps(horovodrun):
    result = horovodrun.run("-np", "1", "-prefix-timestamp", "echo", "text")
    assert re.fullmatch(r"\w{3} \w{3} [ \d]\d \d\d:\d\d:\d\d \d{4}\[0\]<stdout>:text\n", result.stdout), result.stdout


def test_json_lines(horovodrun, tmp_path):
    script = "printf 'a \\377\\n50%%\\rend'; echo oops >&2; exit 3"
    result = horovodrun.run("-np", "1", "--output-format", "json", "--output-filename", "logs", "sh", "-c", script)
    assert result.returncode == 3
    out = [json.loads(line) for line in result.stdout.splitlines()]
    err = [json.loads(line) for line in result.stderr.splitlines()]
    assert [(line["rank"], line["host"], line["stream"], line["text"]) for line in out] == [
        (0, "localhost", "stdout", text) for text in ("a \N{REPLACEMENT CHARACTER}", "50%", "end")
    ]
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", line["time"]) for line in out + err)
    assert ("stderr", 0, "oops") in [(line["stream"], line["rank"], line["text"]) for line in err]
    assert any(
        line["stream"] == "horovodrun" and line["rank"] is None and "exit code 3" in line["text"] for line in err
    )
    assert (tmp_path / "logs/rank.0/stdout").read_text() == result.stdout


def test_full_output_file_is_rotated(horovodrun, tmp_path):
    result = horovodrun.run(
        "-np", "1", "--output-filename", "logs", "--output-rotate-mb", "1", "--output-rotate-files", "2",
        "sh", "-c", "yes $(printf %060000d 7) | head -n 70; echo last",
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    files = {path.name: path for path in (tmp_path / "logs/rank.0").iterdir()}
    assert sorted(files) == ["stderr", "stdout", "stdout.1", "stdout.2"]
    assert files["stdout"].read_text().endswith("[0]<stdout>:last\n")
    assert all(1_000_000 < files[name].stat().st_size <= 1 << 20 for name in ("stdout.1", "stdout.2"))
    kept = "".join(files[name].read_text() for name in ("stdout.2", "stdout.1", "stdout"))
    assert result.stdout.endswith(kept)


def test_output_file_of_a_rank_continues_when_a_new_worker_takes_it(horovodrun, tmp_path):
    script = "echo run; [ -e tried ] && exec sleep 1000; touch tried; exit 1"
    job = horovodrun.start("-np", "1", "--min-np", "1", "--output-filename", "logs", "sh", "-c", script)
    job.stdout.wait_for("run", 60, count=2)
    job.signal(signal.SIGINT)
    assert job.wait() == 130, job.everything()
    assert (tmp_path / "logs/rank.0/stdout").read_text() == "[0]<stdout>:run\n" * 2


def test_dry_run_prints_the_plan_and_starts_nothing(horovodrun, tmp_path):
    (tmp_path / "logs").mkdir()
    result = horovodrun.run(
        "--dry-run", "-np", "3", "-H", "localhost:2,no-such-host.invalid:2", "-x", "TOKEN=secret", "--cycle-time-ms", "7",
        "--output-filename", "logs", "touch", "started",
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""
    assert re.search(r"^ +2 +0 +1 +1 +2  no-such-host\.invalid$", result.stdout, re.M), result.stdout
    for part in (
        "3 processes: touch started",
        "HOROVOD_CYCLE_TIME=7",
        "TOKEN (from -x",
        "Not checked: that the hosts can be reached with ssh",
    ):
        assert part in result.stdout
    assert "secret" not in result.stdout
    assert list((tmp_path / "logs").iterdir()) == [] and not (tmp_path / "started").exists()


def test_config_file(horovodrun, tmp_path):
    (tmp_path / "job.yaml").write_text(
        "params:\n  cycle_time_ms: 5\n  cache_capacity: 9\nstall_check:\n  enabled: false\n"
    )
    show = "echo $HOROVOD_CYCLE_TIME $HOROVOD_CACHE_CAPACITY $HOROVOD_STALL_CHECK_DISABLE"
    for flags in (
        ["--cycle-time-ms", "2", "--config-file", "job.yaml"],
        ["--config-file", "job.yaml", "--cycle-time-ms", "2"],
    ):
        result = horovodrun.run("-np", "1", *flags, "sh", "-c", show)
        assert result.stdout == "[0]<stdout>:2 9 1\n", result.stderr


def test_numbers_of_a_config_file_are_decimal(horovodrun, tmp_path):
    (tmp_path / "job.yaml").write_text("params:\n  cycle_time_ms: 1e1\n  cache_capacity: 010\n")
    show = "echo $HOROVOD_CYCLE_TIME $HOROVOD_CACHE_CAPACITY"
    result = horovodrun.run("-np", "1", "--config-file", "job.yaml", "sh", "-c", show)
    assert result.stdout == "[0]<stdout>:1e1 010\n", result.stderr


def test_any_bytes_pass_and_progress_bars_are_lines(horovodrun):
    code = r"import sys; sys.stdout.buffer.write(b'\xff\xfe\n10%\r20%\rno end of line')"
    job = horovodrun.run("-np", "1", sys.executable, "-c", code)
    assert job.returncode == 0
    for part in ("[0]<stdout>:10%", "[0]<stdout>:20%", "[0]<stdout>:no end of line"):
        assert part in job.stdout


def test_environment_of_the_user_and_of_flags(horovodrun):
    show = "import json, os; print(json.dumps(dict(os.environ)))"
    result = horovodrun.run(
        "-np", "1", "-x", "MY_FLAG=a b=c", "--fusion-threshold-mb", "32", "--cycle-time-ms", "2.5", "python", "-c", show,
        env={"MY_OWN": "line1\nline2 'x' \"y\" $HOME"},
    )  # fmt: skip
    environment = json.loads(result.stdout.partition(":")[2])
    assert environment["MY_OWN"] == "line1\nline2 'x' \"y\" $HOME"
    assert environment["MY_FLAG"] == "a b=c"
    assert environment["HOROVOD_FUSION_THRESHOLD"] == str(32 << 20)
    assert float(environment["HOROVOD_CYCLE_TIME"]) == 2.5
    assert environment["PYTHONUNBUFFERED"] == "1"
    assert (environment["HOROVOD_RANK"], environment["HOROVOD_SIZE"]) == ("0", "1")


THREADS = 'echo "threads ${OMP_NUM_THREADS-unset}"'


def threads_of(horovodrun, *flags, env=None):
    result = horovodrun.run(*flags, "sh", "-c", THREADS, env=env)
    assert result.returncode == 0, result.stderr
    return sorted(re.findall(r"threads (\w+)", result.stdout))


def test_workers_share_the_cores(horovodrun, monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    (cores,) = map(int, threads_of(horovodrun, "-np", "1"))
    assert 1 <= cores <= len(os.sched_getaffinity(0))
    share = str(max(1, cores // 2))
    assert threads_of(horovodrun, "-np", "2") == [share, share]
    plan = horovodrun.run("--dry-run", "-np", "2", "true").stdout
    assert f"on localhost {cores}/2: {share} (--no-omp-threads leaves it alone)" in plan


def test_workers_threads_are_left_alone_if_the_user_says_so(horovodrun, monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert threads_of(horovodrun, "-np", "1", "--no-omp-threads") == ["unset"]
    assert threads_of(horovodrun, "-np", "1", env={"HOROVOD_OMP_THREADS": "0"}) == ["unset"]
    assert threads_of(horovodrun, "-np", "1", env={"OMP_NUM_THREADS": "77"}) == ["77"]
    assert threads_of(horovodrun, "-np", "1", "-x", "OMP_NUM_THREADS=78") == ["78"]
    assert "OMP_NUM_THREADS" not in horovodrun.run("--dry-run", "--no-omp-threads", "-np", "2", "true").stdout


def test_version_help_and_check_build(horovodrun):
    version = horovodrun.run("--version")
    assert version.returncode == 0 and re.search(r"\d+\.\d+\.\d+", version.stdout)
    help_text = horovodrun.run("--help")
    assert help_text.returncode == 0 and "-np" in help_text.stdout and "--ssh-identity-file" in help_text.stdout
    build = horovodrun.run("--check-build")
    assert build.returncode == 0
    for part in (
        "Available Frameworks:",
        "[X] PyTorch",
        "Available Controllers:",
        "Available Tensor Operations:",
        "[X] Gloo",
        "[ ] MPI",
    ):
        assert part in build.stdout


def test_soft_limit_on_files_is_only_the_workers(horovodrun):
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    limit = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (64, hard))  # noqa: E731
    result = horovodrun.run("-np", "40", "sh", "-c", "ulimit -Sn", preexec_fn=limit)
    assert result.returncode == 0, result.stderr
    assert [line.partition(":")[2] for line in result.stdout.splitlines()] == ["64"] * 40


def test_two_jobs_side_by_side_do_not_meet(horovodrun, tmp_path):
    for name in ("one", "two"):
        os.mkfifo(tmp_path / name)
    script = JOBS / "sum_own_number.py"
    first = horovodrun.start("-np", "2", "python", script, "1", "one", "two")
    second = horovodrun.start("-np", "2", "python", script, "1000", "two", "one")
    for job in (first, second):
        assert job.wait(120) == 0, job.everything()
        assert job.stdout.text.count("sums were right 2") == 2


def test_function_from_python(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "import horovod\n"
        "def work(base, factor=1):\n"
        "    import horovod.numpy as hvd\n"
        "    hvd.init()\n"
        "    return base + factor * hvd.rank()\n"
        "if __name__ == '__main__':\n"
        "    print(horovod.run(work, args=(100,), kwargs={'factor': 5}, np=2))\n"
    )
    done = subprocess.run(["python", program], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "[100, 105]"
