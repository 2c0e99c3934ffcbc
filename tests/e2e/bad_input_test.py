"""Invalid command lines of horovodrun: one line that says what is wrong, exit code 2, nothing started."""

import re
import resource

import pytest

SUGGESTION = r"did you mean {}\?"
HOST_FORMAT = "Write each host as HOST:SLOTS, for example"

# Arguments before the command -> what the line must say (a regular expression).
TABLE = [
    (["-np", "1", "-H", "a\nb:1"], r"-H: 'a\\nb' is not a host name"),
    (["-np", "0"], r"-np=0 must be >= 1"),
    (["-np", "-1"], r"-np=-1 must be >= 1"),
    (["-np", "x"], r"-np: 'x' is neither a whole number nor auto"),
    (["-np", "2.5"], r"-np: '2.5' is neither a whole number nor auto"),
    (["-np"], r"-np"),
    ([], r"-np is missing"),
    (["-np", "3", "-H", "localhost:2"], r"3 processes need 3 slots, but the hosts have 2"),
    (["-np", "1", "-H", "localhost:0"], r"localhost.*0 slots"),
    (["-np", "1", "-H", "localhost:x"], re.escape(HOST_FORMAT)),
    (["-np", "1", "-H", "localhost:"], re.escape(HOST_FORMAT)),
    (["-np", "1", "-H", "localhost"], re.escape(HOST_FORMAT)),
    (["-np", "1", "-H", ":2"], re.escape(HOST_FORMAT)),
    (["-np", "1", "-H", "localhost:1,"], re.escape(HOST_FORMAT)),
    (["-np", "2", "-H", "localhost:1,localhost:1"], r"localhost is listed twice"),
    (["-np", "1", "-H", ""], r"-H needs a value"),
    (["-np", "1", "-H", "-oProxyCommand=x:1"], r"-H"),
    (["-np", "1", "--hostfile", "no-such-file"], r"no-such-file.*No such file"),
    (["-np", "1", "-hostfile", "."], r"can't read host file"),
    (["-np", "1", "-hostfile", "/dev/zero"], r"can't read host file /dev/zero: it is longer than 64 MiB"),
    (["-np", "1", "-H", "localhost:1", "--hostfile", "hosts"], r"exclude each other"),
    (["-np", "1", "--output-filenam", "x", "--output-flename", "y"], SUGGESTION.format("--output-filename")),
    (["-np", "1", "--verbos3"], SUGGESTION.format("--verbose")),
    (["-pn", "1"], r"unknown option -pn; " + SUGGESTION.format("-np")),
    (["-np", "1", "--no-such-thing-at-all"], r"unknown option --no-such-thing-at-all"),
    (["-np", "1", "-p", "99999"], r"--ssh-port=99999"),
    (["-np", "1", "--start-timeout", "soon"], r"--start-timeout"),
    (["-np", "1", "--fusion-threshold-mb", "-1"], r"=-1 must be >= 0"),
    (["-np", "1", "--log-level", "LOUD"], r"--log-level='LOUD': must be TRACE"),
    (["-np", "1", "--network-interfaces", "no-such-interface0"], r"no-such-interface0"),
    (["-np", "2", "--min-np", "3"], r"--min-np \(3\) must not be more than -np \(2\)"),
    (["-np", "3", "--min-np", "2", "--max-np", "2"], r"--max-np \(2\) must not be less than -np \(3\)"),
    (["-np", "1", "--spares", "3"], r"--spares is for elastic jobs; --min-np, --max-np or --host-discovery-script"),
    (["-np", "1", "--host-discovery-script", "no-such-script"], r"no-such-script does not exist"),
    (["-np", "1", "--host-discovery-script", "/bin/true", "-H", "localhost:1"], r"exclude each other"),
    (["-np", "1", "--min-np", "1", "--max-failures", "x"], r"as 5/10m"),
    (["-np", "1", "--min-np", "1", "--blacklist-cooldown-range", "5", "1"], r"MIN \(5\) must not be more than MAX \(1\)"),
    (["-np", "1", "--min-np", "1", "--grace", "soon"], r"--grace: 'soon'"),
    (["-np", "1", "--elastic-timeout", "5"], r"--elastic-timeout is for elastic jobs"),
    (["-np", "1", "--reset-limit", "3"], r"--reset-limit is for elastic jobs"),
    (["-np", "1", "--slots-per-host", "1"], r"--slots-per-host is for elastic jobs"),
    (["-np", "1", "--blacklist-cooldown-range", "1", "2"], r"--blacklist-cooldown-range is for elastic jobs"),
    (["-np", "1", "-i", "no-such-key"], r"--ssh-identity-file: can't read no-such-key: No such file"),
    (["-np", "1", "--timeline-filename", ""], r"--timeline-filename needs a value, not an empty one"),
    (["-np", "1", "--mpi"], r"--mpi is not available: .*leave it out"),
    (["-np", "1", "--jsrun"], r"--jsrun is not available: .*leave it out: .*blaunch"),
    (["-np", "1", "--mpi-args=--oversubscribe"], r"--mpi-args is not available: .*use -x"),
    (["-np", "1", "--autotune", "--no-autotune"], r"--autotune and --no-autotune exclude each other"),
    (["-np", "1", "--output-format", "xml"], r"--output-format: 'xml' is not text or json"),
    (["-np", "1", "--output-rotate-mb", "1"], r"--output-rotate-mb is for the files of --output-filename"),
    (["-np", "1", "--config-file", "no-such-file"], r"--config-file: can't read no-such-file: No such file"),
    (["-np", "1", "--config-file", "."], r"--config-file: can't read \.: Is a directory"),
    (["--dry-run"], r"-np is missing"),
    (["-np", "1", "--launcher", "slurm"], r"--launcher slurm: there is ssh, srun, .* or any command with \{host\}"),
    (["-np", "1", "--launcher", "docker exec -i"], r"--launcher docker exec -i: .*\{host\}"),
    (["-np", "1", "--launcher", "run '{host}"], r"a quote is not closed"),
    (["-np", "1", "--launcher", "srun", "-p", "22"], r"--ssh-port is for --launcher ssh, and --launcher srun was given"),
    (["-np", "1", "--launcher", "qrsh", "-i", "key"], r"--ssh-identity-file is for --launcher ssh"),
    (["-np", "1", "--end-with-stdin"], r"--end-with-stdin it must be a pipe"),
    (["-np", "1", "-x", "NOT_SET_ANYWHERE"], r"NOT_SET_ANYWHERE"),
    (["-np", "2", "--min-np", "1", "-H", "localhost:65536"], r"host localhost has 65536 slots, .* with --max-np"),
    (["-np", "2", "--host-discovery-script", "/bin/echo localhost:65536"], r"host localhost has 65536 slots, .* with --max-np"),
]  # fmt: skip


CONFIG_FILES = [
    ("params: {cycle_time_ms: x}\n", 1, r"params\.cycle_time_ms: --cycle-time-ms='x': must be a number"),
    ("autotune:\n  enabled: maybe\n", 2, r"'maybe' is not true or false"),
    ("autotune:\n  gaussian_process_noise: 2\n", 2, r"must be a number from 0 to 1"),
    ("params:\n  cycle_time: 1\n", 2, r"unknown key params\.cycle_time; did you mean params\.cycle_time_ms\?"),
    ("controller: mpi\n", 1, r"--mpi is not available"),
    ("params:\n  fusion_threshold_mb: 1.5\n", 2, r"'1\.5' is not a whole number"),
    ("params:\n  fusion_threshold_mb: 0x10\n", 2, r"'0x10' is not a whole number"),
    ("params:\n  cache_capacity: 1_000\n", 2, r"must be a whole number"),
    ("params:\n  cycle_time_ms:\n", 2, r"params\.cycle_time_ms: has no value"),
    ("logging:\n  level: [INFO]\n", 2, r"logging\.level: must not be a list"),
    ("params: 1\nparams: 2\n", 2, r"params is given twice"),
    ("a: 1\n b: 2\n", 2, r"not valid YAML"),
]  # fmt: skip


def check_refusal(result, pattern, directory):
    lines = result.stderr.splitlines()
    assert result.returncode == 2, result.stderr
    assert len(lines) == 1, result.stderr
    assert re.search(pattern, lines[0]), lines[0]
    assert result.stdout == ""
    assert not (directory / "started").exists()


@pytest.mark.parametrize(
    "arguments, pattern", TABLE, ids=lambda value: " ".join(value) if isinstance(value, list) else ""
)
def test_refused(horovodrun, tmp_path, arguments, pattern):
    check_refusal(horovodrun.run(*arguments, "touch", "started", timeout=60), pattern, tmp_path)
    assert horovodrun.processes_left() == []


def test_no_command(horovodrun, tmp_path):
    check_refusal(horovodrun.run("-np", "2", timeout=60), "no command", tmp_path)


@pytest.mark.parametrize(
    "variables, pattern",
    [
        ({"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "a[1-"}, r"SLURM_JOB_NODELIST='a\[1-'.*with -H"),
        (
            {"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "a", "SLURM_STEP_NUM_TASKS": "4"},
            r"srun has started horovodrun 4",
        ),
        ({"LSB_JOBID": "7", "LSB_MCPU_HOSTS": "a"}, r"LSF's list of hosts in LSB_MCPU_HOSTS='a'"),
        ({"PBS_NODEFILE": "/no/such/file"}, r"PBS_NODEFILE \(/no/such/file\): this file can't be read; .*with -H"),
        ({"PE_HOSTFILE": "/etc/hostname"}, r"Grid Engine's list of hosts in PE_HOSTFILE .*has no number of slots"),
        (
            {"LSB_JOBID": "7", "LSB_MCPU_HOSTS": "no-such.invalid 1"},
            r"no-such.invalid: .*; it is a host of LSB_MCPU_HOSTS='no-such.invalid 1': give others with -np and -H",
        ),
        (
            {"SLURM_HET_SIZE": "2", "SLURM_JOB_ID": "7"},
            r"job of Slurm is heterogeneous: .*-H.*srun --het-group=0-1 python train.py",
        ),
    ],
)
def test_schedulers_list_that_makes_no_sense(horovodrun, tmp_path, variables, pattern):
    check_refusal(horovodrun.run("touch", "started", timeout=60, env=variables), pattern, tmp_path)


@pytest.mark.parametrize("name", ["no-such-program", "./no-such-program", "/no/such/program"])
def test_command_not_found_names_the_host(horovodrun, tmp_path, name):
    check_refusal(
        horovodrun.run("-np", "2", name, timeout=60),
        rf"localhost.*{re.escape(name)}|{re.escape(name)}.*localhost",
        tmp_path,
    )


def test_command_without_execute_permission(horovodrun, tmp_path):
    (tmp_path / "script.py").write_text("print()\n")
    check_refusal(horovodrun.run("-np", "1", "./script.py", timeout=60), r"script\.py", tmp_path)


def test_small_stack(horovodrun, tmp_path):
    limit = lambda: resource.setrlimit(resource.RLIMIT_STACK, (128 << 10, 128 << 10))  # noqa: E731
    check_refusal(
        horovodrun.run("-np", "2", "touch", "started", timeout=30, preexec_fn=limit), r"only 128 KiB here", tmp_path
    )


def test_little_address_space(horovodrun, tmp_path):
    limit = lambda: resource.setrlimit(resource.RLIMIT_AS, (100 << 20, 100 << 20))  # noqa: E731
    check_refusal(
        horovodrun.run("-np", "2", "touch", "started", timeout=60, preexec_fn=limit),
        r"only 100 MiB of address space may be used here \(ulimit -v\)",
        tmp_path,
    )


@pytest.mark.parametrize(
    "text, line, pattern",
    [
        ("localhost slots=1\nother slot=2\n", 2, "name slots=N"),
        ("localhost slots=\n", 1, "not a number of slots"),
        ("# comment\n\nlocalhost slots=-1\n", 3, "localhost"),
        ("localhost slots=0\n", 1, "0 slots"),
        ("localhost\n", 1, "slots"),
        ("localhost slots=1\nlocalhost slots=1\n", 2, "listed twice"),
        ("localhost slots=1 slots=2\n", 1, "name slots=N"),
    ],
)
def test_broken_line_in_hostfile_is_named(horovodrun, tmp_path, text, line, pattern):
    (tmp_path / "hosts").write_text(text)
    check_refusal(
        horovodrun.run("-np", "1", "--hostfile", "hosts", "true", timeout=60), rf"hosts:{line}: .*{pattern}", tmp_path
    )


def test_empty_hostfile(horovodrun, tmp_path):
    (tmp_path / "hosts").write_text("# nothing\n")
    check_refusal(
        horovodrun.run("-np", "1", "--hostfile", "hosts", "true", timeout=60), "hosts: lists no host", tmp_path
    )


def test_controller_of_a_file_is_looked_at_beside_the_flag(horovodrun, tmp_path):
    (tmp_path / "job.yaml").write_text("controller: mpi\n")
    result = horovodrun.run("-np", "1", "--gloo", "--config-file", "job.yaml", "touch", "started", timeout=60)
    check_refusal(result, r"job\.yaml:1: controller: --mpi is not available", tmp_path)


@pytest.mark.parametrize("text, line, pattern", CONFIG_FILES)
def test_broken_line_in_config_file_is_named(horovodrun, tmp_path, text, line, pattern):
    (tmp_path / "job.yaml").write_text(text)
    result = horovodrun.run("-np", "1", "--config-file", "job.yaml", "touch", "started", timeout=60)
    check_refusal(result, rf"--config-file: job\.yaml:{line}: .*{pattern}", tmp_path)
