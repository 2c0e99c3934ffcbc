"""The rendezvous server as an installed library: programs are built against it outside of the source tree, and preempt trainings with it."""

import os
import queue
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from horovod import rendezvous
from polling import poll_until
from processes import Running, pids_with, wait_until_none
from training_log import TrainingLog

ROOT = Path(__file__).resolve().parent.parent.parent
LIBRARY = Path(os.environ["PYTHONPATH"].split(":")[0]) / "horovod" / "lib"
TRAIN = ROOT / "tests" / "cluster" / "scripts" / "elastic_train.py"
# A program with its own copy of gRPC: the library's calls must not resolve to that. It lists its addresses.
PROGRAM = r"""
#include <horovod/rendezvous.h>
#include <stdio.h>
#include <stdlib.h>
void grpc_init(void) { fputs("the program's own grpc_init was called\n", stderr); abort(); }
int main(int argc, char** argv) {
  const char* listen[] = {"127.0.0.1:0"};
  hvd_rendezvous_server* server = NULL;
  hvd_rendezvous_job* job = NULL;
  hvd_rendezvous_job_options options;
  char* text = NULL;
  const int abi = argc > 1 ? atoi(argv[1]) : HVD_RENDEZVOUS_ABI_VERSION;
  if (hvd_rendezvous_start(abi, listen, 1, &server) != HVD_RENDEZVOUS_OK) {
    fprintf(stderr, "%s\n", hvd_rendezvous_last_error());
    return 2;
  }
  hvd_rendezvous_job_options_init(&options, sizeof(options));
  if (hvd_rendezvous_add_job(server, &options, &job) || hvd_rendezvous_describe(job, &text)) return 3;
  printf("%s %s\n", hvd_rendezvous_address(server, 0), text);
  hvd_rendezvous_free(text);
  return hvd_rendezvous_remove_job(job) || hvd_rendezvous_stop(server);
}
"""


def run(*command, **how):
    return subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=240, **how)


def checked(*command, **how):
    result = run(*command, **how)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


@pytest.fixture(scope="module")
def prefix(tmp_path_factory):
    """What tools/install installs, moved to elsewhere afterwards: it must find itself."""
    folder = tmp_path_factory.mktemp("prefix")
    checked("/usr/bin/python3", ROOT / "tools/install_library.py", LIBRARY.parent, folder / "first")
    again = checked("/usr/bin/python3", ROOT / "tools/install_library.py", LIBRARY.parent, folder / "first")
    assert again.strip() == f"{folder / 'first'}: nothing to do"
    return (folder / "first").rename(folder / "moved")


def build_by_pkg_config(prefix, source, *options):
    """A C program of one source, which lies beside it. No warning is allowed, in the header neither."""
    found = checked(
        "pkg-config", "--cflags", "--libs", "horovod-rendezvous",
        env={**os.environ, "PKG_CONFIG_PATH": str(prefix / "lib/pkgconfig")},
    )  # fmt: skip
    warnings = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"]
    checked("cc", *options, *warnings, "-o", source.with_suffix(""), source, *found.split())
    return source.with_suffix("")


@pytest.fixture(scope="module")
def program(prefix, tmp_path_factory):
    source = tmp_path_factory.mktemp("program") / "program.c"
    source.write_text(PROGRAM)
    return build_by_pkg_config(prefix, source, "-std=c99", "-rdynamic")


@pytest.fixture(scope="module")
def scheduler_in_c(prefix, tmp_path_factory):
    """examples/scheduler_c, built by cc in a separate folder."""
    source = tmp_path_factory.mktemp("scheduler_in_c") / "scheduler.c"
    source.write_text((ROOT / "examples/scheduler_c/scheduler.c").read_text())
    return build_by_pkg_config(prefix, source, "-std=c11")


@pytest.fixture(scope="module")
def scheduler_in_cpp(prefix, tmp_path_factory):
    """examples/scheduler_cmake, built by CMake in a separate folder."""
    folder = tmp_path_factory.mktemp("scheduler")
    for name in ("CMakeLists.txt", "scheduler.cpp"):
        (folder / name).write_text((ROOT / "examples/scheduler_cmake" / name).read_text())
    flags = "-DCMAKE_CXX_FLAGS=-Wall -Wextra -Werror"
    checked("cmake", "-S", folder, "-B", folder / "build", f"-DCMAKE_PREFIX_PATH={prefix}", flags)
    checked("cmake", "--build", folder / "build")
    return folder / "build" / "scheduler"


def exported(library):
    return {line.split()[-1] for line in checked("nm", "-D", "--defined-only", library).splitlines()}


def test_libraries_export_nothing_but_their_own_functions():
    names = exported(LIBRARY / "libhvd_rendezvous.so")
    assert names and all(name.startswith("hvd_rendezvous_") for name in names), names
    core = exported(LIBRARY / "libhvd.so")
    assert all(name.startswith("hvd_") for name in core), core
    assert names <= core
    header = (ROOT / "rendezvous/c_api/include/horovod/rendezvous.h").read_text()
    declared = set(re.findall(r"HVD_RENDEZVOUS_EXPORT\s[\w*\s]+?\*?\b(hvd_rendezvous_\w+)\(", header))
    assert declared == names, "the header declares what the library has"


def test_library_needs_nothing_but_the_c_library():
    needed = re.findall(r"NEEDED.*\[(.*)\]", checked("readelf", "-d", LIBRARY / "libhvd_rendezvous.so"))
    assert set(needed) <= {"libc.so.6", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}, needed


def test_program_with_a_grpc_of_its_own(program):
    out = checked(program)
    assert re.match(r'127\.0\.0\.1:[1-9]\d* {"job":"\w{32}","state":"forming"', out), out


def test_other_abi_version_is_one_line(program):
    result = run(program, "7")
    assert result.returncode == 2
    assert re.fullmatch(
        r"the program was built for version 7 of the ABI of libhvd_rendezvous\.so, and this library \(of Horovod [\d.]+\) has version 1: "
        r"build the program with the header of this library\n",
        result.stderr,
    ), result.stderr


def test_library_without_its_core_says_so(program, tmp_path):
    lone = tmp_path / "libhvd_rendezvous.so"
    lone.write_bytes((LIBRARY / "libhvd_rendezvous.so").read_bytes())
    result = run(program, env={**os.environ, "LD_PRELOAD": str(lone)})
    assert result.returncode == 2
    assert result.stderr.startswith(
        f"libhvd_rendezvous.so can't load libhvd.so: {tmp_path}/horovod/libhvd.so: cannot open"
    )
    assert result.stderr.count("\n") == 1, result.stderr


def test_cmake_refuses_another_version(prefix, tmp_path):
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.16)\nproject(p C)\nfind_package(horovod-rendezvous 99 REQUIRED)\n"
    )
    result = run("cmake", "-S", tmp_path, "-B", tmp_path / "build", f"-DCMAKE_PREFIX_PATH={prefix}")
    assert result.returncode != 0
    assert 'compatible with requested version "99"' in re.sub(r"\s+", " ", result.stderr)


def training(name, epochs):
    return (
        f"{sys.executable} {TRAIN} --framework numpy --job {name} --epochs {epochs} --samples 240 --step-seconds 0.05"
    )


def endless_training(name, tmp_path):
    """It ends when there is a file `end`."""
    return f"{training(name, 100000)} --end-file {tmp_path / 'end'}"


def start(command, tmp_path, **variables):
    mark = f"embedding-{os.getpid()}-{tmp_path.name}"
    environment = {**os.environ, "HVD_TEST_MARK": mark, "OMP_NUM_THREADS": "1", **variables}
    return Running([str(part) for part in command], env=environment, cwd=tmp_path), f"HVD_TEST_MARK={mark}\0".encode()


@pytest.fixture(params=["C", "C++", "Python"])
def any_scheduler(request):
    """The command of examples/scheduler_c, examples/scheduler_cmake or examples/scheduler.py, which do the same."""
    if request.param == "Python":
        return [sys.executable, ROOT / "examples" / "scheduler.py"]
    return [request.getfixturevalue({"C": "scheduler_in_c", "C++": "scheduler_in_cpp"}[request.param])]


def test_scheduler_preempts_without_losing_a_step(any_scheduler, tmp_path):
    running, mark = start([*any_scheduler, 3, endless_training("one", tmp_path), training("two", 2)], tmp_path)
    first, urgent = TrainingLog(running.stdout, "one"), TrainingLog(running.stdout, "two")
    first.wait_until(lambda: urgent.all("done") and first.trains_with(3), 120, "all slots are the first's again")
    (tmp_path / "end").touch()
    assert running.wait(240) == 0, running.everything()
    assert first.check_samples(240, first.epochs()) == 0
    assert urgent.check_samples(240, 2) == 0
    sizes = [size for size, _ in first.worlds().values()]
    assert 1 in sizes, f"it gave its slots to the urgent one: {sizes}"
    assert sizes[-1] == 3, f"and got them back: {sizes}"
    assert {size for size, _ in urgent.worlds().values()} == {2}
    assert wait_until_none(lambda: pids_with(mark)) == []


def test_scheduler_survives_the_kill_of_a_worker(any_scheduler, tmp_path):
    running, mark = start([*any_scheduler, 2, endless_training("one", tmp_path), training("two", 1)], tmp_path)
    log = TrainingLog(running.stdout, "one")
    log.wait_until(lambda: log.has_trained_with(1, after=1), 120, "the urgent job has a slot")
    log.wait_until(lambda: log.trains_with(2), 120, "all slots are the first's again")
    world = log.newest_world()
    os.kill(log.process_ids()[0], signal.SIGKILL)
    log.wait_until(lambda: log.newest_world() > world and log.trains_with(2), 120, "a replacement came")
    (tmp_path / "end").touch()
    assert running.wait(240) == 0, running.everything()
    assert log.check_samples(240, log.epochs()) <= 1
    assert [size for size, _ in log.worlds().values()][-1] == 2
    assert wait_until_none(lambda: pids_with(mark)) == []


def test_program_of_the_page_runs_an_elastic_job(tmp_path):
    [program] = [
        block
        for block in re.findall(r"^```python\n(.*?)^```", (ROOT / "docs/embedding.md").read_text(), re.M | re.S)
        if block.startswith("import ")
    ]
    (tmp_path / "onejob.py").write_text(program)
    command = [sys.executable, tmp_path / "onejob.py", 2, "sh", "-c", "exec " + endless_training("one", tmp_path)]
    running, mark = start(command, tmp_path)
    log = TrainingLog(running.stdout, "one")
    log.wait_until(lambda: log.trains_with(2), 120, "it trains")
    world = log.newest_world()
    os.kill(log.process_ids()[0], signal.SIGKILL)
    log.wait_until(lambda: log.newest_world() > world and log.trains_with(2), 120, "a replacement came")
    (tmp_path / "end").touch()
    assert running.wait(240) == 0, running.everything()
    assert log.check_samples(240, log.epochs()) <= 1
    assert wait_until_none(lambda: pids_with(mark)) == []


def test_scheduler_ends_though_its_first_job_never_trains(any_scheduler, tmp_path):
    running, _ = start([*any_scheduler, 2, "false", training("two", 1)], tmp_path)
    assert running.wait(120) == 1, running.everything()
    assert TrainingLog(running.stdout, "two").check_samples(240, 1) == 0


def test_scheduler_replaces_the_variables_of_a_job_that_it_is_in_itself(any_scheduler, tmp_path):
    command = [*any_scheduler, 2, training("one", 1), training("two", 1)]
    running, _ = start(command, tmp_path, HOROVOD_AGENT_SOCKET="of-another-job", HOROVOD_WORKER_ID="1234")
    assert running.wait(120) == 0, running.everything()


def test_scheduler_refuses_a_bad_command_line(any_scheduler):
    result = run(*any_scheduler, "1", "true", "true")
    assert result.returncode == 2
    assert re.fullmatch(
        r'usage: scheduler\S* SLOTS "COMMAND" "URGENT COMMAND", with two slots or more\n', result.stderr
    )


def start_scheduler(tmp_path, hosts, *command):
    script = ROOT / "tests" / "e2e" / "scripts" / "resumed_scheduler.py"
    return start([sys.executable, script, tmp_path / "state", 2, hosts, *command], tmp_path)


def logged_training(tmp_path):
    """It ends when there is a file `end`."""
    (tmp_path / "logs").mkdir()
    files = f"--log-dir {tmp_path / 'logs'} --end-file {tmp_path / 'end'}"
    return f"{sys.executable} {TRAIN} --framework numpy --epochs 100000 --samples 240 --step-seconds 0.05 {files}"


def logged(tmp_path):
    return TrainingLog.of_files(sorted((tmp_path / "logs").iterdir()))


def check_samples(tmp_path):
    log = logged(tmp_path)
    return log.check_samples(240, log.epochs())


def test_killed_scheduler_comes_back_and_no_step_is_lost(tmp_path):
    command = logged_training(tmp_path)
    first, mark = start_scheduler(tmp_path, "a:1,b:1", command)
    log = TrainingLog(first.stdout)
    log.wait_until(lambda: log.trains_with(2) and log.last_step() > 3, 120, "two train")
    first.signal(signal.SIGKILL)
    first.popen.wait(60)
    then = log.last_step()
    log.wait_until(lambda: log.last_step() > then + 5, 60, "they continue to train")
    second, _ = start_scheduler(tmp_path, "a:1,b:1", command)
    second.stdout.wait_for(r"scheduler: kept \[\('kept', None\)\]", 60)
    second.stdout.wait_for("scheduler: found", 60, count=2)
    (tmp_path / "end").touch()
    assert second.wait(240) == 0, second.everything()
    assert "scheduler: started" not in second.stdout.text, "its workers are those of the first"
    assert check_samples(tmp_path) == 0
    assert len(logged(tmp_path).worlds()) == 1, "it was one world, from the beginning to the end"
    assert list((tmp_path / "state").glob("job-*")) == [], "the journal of a job that has ended is removed"
    assert wait_until_none(lambda: pids_with(mark)) == []


def test_worker_that_died_while_no_scheduler_was_there_is_replaced(tmp_path):
    command = logged_training(tmp_path)
    first, mark = start_scheduler(tmp_path, "a:1,b:1", command)
    log = TrainingLog(first.stdout)
    log.wait_until(lambda: log.trains_with(2) and log.last_step() > 3, 120, "two train")
    first.signal(signal.SIGKILL)
    first.popen.wait(60)
    world = log.newest_world()
    os.kill(log.process_ids()[1], signal.SIGKILL)
    second, _ = start_scheduler(tmp_path, "a:1,b:1", command)
    second.stdout.wait_for("scheduler: started", 60)
    poll_until(lambda: logged(tmp_path).newest_world() > world and logged(tmp_path).trains_with(2), "a replacement")
    (tmp_path / "end").touch()
    assert second.wait(240) == 0, second.everything()
    assert check_samples(tmp_path) <= 1
    assert [size for size, _ in logged(tmp_path).worlds().values()][-1] == 2
    assert wait_until_none(lambda: pids_with(mark)) == []


def test_killed_scheduler_of_agents_comes_back_and_no_step_is_lost(tmp_path):
    first, mark = start_scheduler(tmp_path, "")
    address = first.stdout.wait_for(r"serves at (\S+)", 60).group(1)
    agent_command = [LIBRARY.parent / "bin/horovod-agent", "--join", address, "--token-file", tmp_path / "state.token"]
    agent, _ = start([*agent_command, "--slots", "2", "--", *logged_training(tmp_path).split()], tmp_path)
    log = TrainingLog(agent.stdout)
    log.wait_until(lambda: log.trains_with(2) and log.last_step() > 3, 120, "two train")
    first.signal(signal.SIGKILL)
    first.popen.wait(60)
    then = log.last_step()
    log.wait_until(lambda: log.last_step() > then + 5, 60, "they continue to train")
    second, _ = start_scheduler(tmp_path, "")
    second.stdout.wait_for("scheduler: host_back", 60)
    (tmp_path / "end").touch()
    assert second.wait(240) == 0, second.everything()
    assert agent.wait(60) == 0, agent.everything()
    assert check_samples(tmp_path) == 0
    assert len(logged(tmp_path).worlds()) == 1
    assert wait_until_none(lambda: pids_with(mark)) == []


def test_workers_of_a_scheduler_that_keeps_nothing_end_soon_after_it(tmp_path):
    script = ROOT / "tests" / "e2e" / "scripts" / "resumed_scheduler.py"
    command = f"{training('one', 100000)}"
    running, mark = start([sys.executable, script, "-", 2, "a:2", command], tmp_path)
    log = TrainingLog(running.stdout, "one")
    log.wait_until(lambda: log.trains_with(2), 120, "two train")
    running.signal(signal.SIGKILL)
    running.popen.wait(60)
    assert wait_until_none(lambda: pids_with(mark), 60) == [], running.everything()


def test_two_schedulers_on_one_folder_are_one_line(tmp_path):
    refused = pytest.raises(rendezvous.RendezvousError, match=f"^another process uses {tmp_path / 'state'}$")
    with rendezvous.Server(state_dir=tmp_path / "state"), refused:
        rendezvous.Server(state_dir=tmp_path / "state")


def test_agents_take_part_as_they_are_offered_without_losing_a_step(tmp_path):
    token = tmp_path / "token"
    with rendezvous.Server() as server:
        results, free = queue.Queue(), queue.Queue()
        job = server.add_job(1, min_np=1, max_np=4, finished=results.put, host_free=free.put)
        job.offer_slots({"a": 1})
        token.touch(mode=0o600)
        token.write_text(job.credentials())
        agents = {}
        command = logged_training(tmp_path)
        for host in ("b", "a"):
            agent = [LIBRARY.parent / "bin/horovod-agent", "--join", server.addresses[0], "--token-file", token]
            agents[host], mark = start([*agent, "--host", host, "--slots", "2", "--", *command.split()], tmp_path)
            if host == "b":
                agents["b"].stderr.wait_for("host b waits until it is offered to the job", 60)
        log = TrainingLog(agents["a"].stdout)
        log.wait_until(lambda: log.trains_with(1), 120, "a trains alone, with one of its slots")
        job.offer_slots({"a": 1, "b": 3})
        other = TrainingLog(agents["b"].stdout)
        other.wait_until(lambda: len(other.process_ids()) == 2, 120, "b trains, with the slots that it has")
        job.offer_slots({"a": 2})
        assert free.get(timeout=60) == "b"
        agents["b"].stderr.wait_for("host b waits until it is offered to the job", 60, count=2)
        job.offer_slots({"a": 2, "b": 1})
        poll_until(lambda: logged(tmp_path).trains_with(3), "a world of three")
        (tmp_path / "end").touch()
        assert results.get(timeout=240).success
        assert [agent.wait(60) for agent in agents.values()] == [0, 0]
    assert check_samples(tmp_path) == 0
    assert max(size for size, _ in logged(tmp_path).worlds().values()) == 3
    assert wait_until_none(lambda: pids_with(mark)) == []


def test_job_of_agents_changes_its_size_without_losing_a_step(tmp_path):
    """A server in Python, a job whose processes an agent starts with the job's credentials, and new limits while it trains."""
    token = tmp_path / "token"
    with rendezvous.Server() as server:
        results = queue.Queue()
        job = server.add_job(2, min_np=1, max_np=2, finished=results.put)
        token.touch(mode=0o600)
        token.write_text(job.credentials())
        command = [
            LIBRARY.parent / "bin/horovod-agent",
            "--join",
            server.addresses[0],
            "--token-file",
            token,
            "--slots",
            "3",
        ]
        running, mark = start([*command, "--", *endless_training("one", tmp_path).split()], tmp_path)
        log = TrainingLog(running.stdout, "one")
        log.wait_until(lambda: log.trains_with(2), 120, "two train")
        job.set_limits(1, 1)
        log.wait_until(lambda: log.trains_with(1), 60, "one trains alone")
        job.set_limits(3)
        log.wait_until(lambda: log.trains_with(3), 60, "three train")
        (tmp_path / "end").touch()
        assert results.get(timeout=120).success
        assert running.wait(60) == 0, running.everything()
    assert log.check_samples(240, log.epochs()) == 0
    assert wait_until_none(lambda: pids_with(mark)) == []
