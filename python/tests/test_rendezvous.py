"""horovod.rendezvous: a server within a Python program, here one that is a rank of another job."""

import os
import queue
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from horovod import rendezvous

SECONDS = 60


class Scheduler:
    """Queues what a job asks for."""

    def __init__(self):
        self.starts, self.stops, self.free, self.results, self.notices = (queue.Queue() for _ in range(5))

    def add(self, server, np, **options):
        return server.add_job(
            np,
            start_worker=self.starts.put,
            stop_worker=lambda worker, grace: self.stops.put((worker, grace)),
            host_free=self.free.put,
            finished=self.results.put,
            notice=self.notices.put,
            **options,
        )


@pytest.fixture
def server():
    with rendezvous.Server() as server:
        yield server


@pytest.fixture
def scheduler():
    return Scheduler()


def test_a_job_to_its_end(server, scheduler):
    job = scheduler.add(server, 2)
    job.offer_slots({"here": 2})
    one, two = scheduler.starts.get(timeout=SECONDS), scheduler.starts.get(timeout=SECONDS)
    assert one.host == "here" and "HOROVOD_AGENT_SOCKET" in one.environment and one.worker != two.worker
    job.report_started(one.worker, 123)
    (host,) = job.describe()["hosts"]
    assert (host["host"], host["slots"]) == ("here", 2)
    assert [worker["pid"] for worker in host["workers"] if worker["worker"] == one.worker] == [123]
    job.report_exit(one.worker, 3, last_output="first\nboom\n")
    assert scheduler.stops.get(timeout=SECONDS)[0] == two.worker
    job.report_exit(two.worker, -15)
    result = scheduler.results.get(timeout=SECONDS)
    assert (result.success, result.exit_code, result.exit_meaning) == (False, 3, "exit code 3")
    assert scheduler.free.get(timeout=SECONDS) == "here"


def test_an_elastic_job_tells_of_itself(server, scheduler):
    job = scheduler.add(server, 1, max_np=2, id="mine")
    assert job.id == "mine" and (job.describe()["min_np"], job.describe()["max_np"]) == (1, 2)
    job.offer_slots([rendezvous.Host("a", 1, "m"), rendezvous.Host("b", 1, "m")])
    notice = scheduler.notices.get(timeout=SECONDS)
    assert (notice["kind"], notice["host"]) == ("host_joined", "a")
    assert 'job="mine"' in server.metrics() and 'job="mine"' in job.metrics()
    job.request_stop("enough", 7, 1)
    worker, grace = scheduler.stops.get(timeout=SECONDS)
    assert grace == 1
    for started in (worker, scheduler.stops.get(timeout=SECONDS)[0]):
        job.report_exit(started, -15)
    assert scheduler.results.get(timeout=SECONDS).exit_code == 7


def test_start_worker_that_raises_is_a_start_that_failed(server, scheduler, monkeypatch):
    printed = queue.Queue()
    monkeypatch.setattr(sys, "unraisablehook", lambda said: printed.put(str(said.exc_value)))

    def fail(worker):
        raise OSError("no such program")

    job = server.add_job(1, start_worker=fail, stop_worker=print, finished=scheduler.results.put)
    job.offer_slots({"here": 1})
    assert "OSError: no such program" in scheduler.results.get(timeout=SECONDS).summary
    assert printed.get(timeout=SECONDS) == "no such program"


def test_a_process_that_start_worker_starts_can_be_terminated(server, scheduler):
    """The library's threads block all signals; what they start must not."""
    blocked = queue.Queue()

    def start(worker):
        command = [sys.executable, "-c", "import signal; print(len(signal.pthread_sigmask(signal.SIG_BLOCK, ())))"]
        blocked.put(subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True).stdout)

    job = server.add_job(1, start_worker=start, stop_worker=print, finished=scheduler.results.put)
    job.offer_slots({"here": 1})
    assert blocked.get(timeout=SECONDS) == "0\n"


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"np": 0}, "np is 0, and must be from 1 to 1048576"),
        ({"np": 2, "min_np": 3}, "min_np is 3, and must be from 0 to 2"),
        ({"np": 1, "start_timeout": -1}, "start_timeout is -1 seconds, and must be from 0 to 604800"),
        ({"np": 2**32 + 1}, "np is 4294967297, and must be from -2147483647 to 2147483647"),
        ({"np": 1, "id": "a\0b"}, "'a\\x00b' has a NUL character"),
        ({"np": 1, "start_worker": print}, "start_worker and stop_worker: set both, or neither"),
    ],
)
def test_bad_options_are_value_errors(server, arguments, text):
    with pytest.raises(ValueError) as error:
        server.add_job(**arguments)
    assert str(error.value) == text


def test_unknown_options_are_named(server):
    with pytest.raises(TypeError, match=r"no option 'reset'; it has cooldown, .*, reset_limit"):
        server.add_job(1, reset=3)


def test_bad_addresses():
    with pytest.raises(ValueError, match="nonsense"):
        rendezvous.Server("nonsense")
    with rendezvous.Server(["127.0.0.1:0", "127.0.0.2:0"]) as one:
        assert [address.split(":")[0] for address in one.addresses] == ["127.0.0.1", "127.0.0.2"]
        with pytest.raises(rendezvous.RendezvousError) as error:
            rendezvous.Server(one.addresses[0])
        assert error.value.code == 14 and one.addresses[0] in str(error.value)


def test_job_of_agents(server):
    job = server.add_job(1)
    assert job.credentials().startswith('token: "')
    job.offer_slots({"here": 1})
    assert job.describe()["explanation"] == "waiting for more hosts to attach (0 of 1 slot)"


def test_jobs_outlive_a_server_with_a_state_directory(scheduler, tmp_path):
    with rendezvous.Server(state_dir=tmp_path / "state") as server:
        assert server.kept_jobs() == []
        addresses = server.addresses
        job = scheduler.add(server, 1, min_np=1, max_np=2, id="mine", reattach_timeout=60)
        credentials = job.credentials()
        job.offer_slots({"here": 1})
        one = scheduler.starts.get(timeout=SECONDS)
        job.report_started(one.worker, 4711)
        job.describe()  # what was reported has arrived
    with rendezvous.Server(state_dir=tmp_path / "state") as server:
        assert server.addresses == addresses
        kept = rendezvous.KeptJob("mine", 1, 1, 2, starts_workers=True, result=None, problem=None)
        assert server.kept_jobs() == [kept]
        with pytest.raises(rendezvous.RendezvousError, match="was begun with other options") as error:
            scheduler.add(server, 1, max_np=5, id="mine")
        assert error.value.code == 9
        job = scheduler.add(server, 1, min_np=1, max_np=2, id="mine", reattach_timeout=60)
        assert job.credentials() == credentials
        assert job.earlier_workers() == [rendezvous.EarlierWorker(one.worker, "here", 4711)]
        with pytest.raises(rendezvous.RendezvousError, match="there is no earlier worker 99"):
            job.start_again(99)
        job.report_exit(one.worker, unknown_end="ended while no scheduler was there")
        assert job.earlier_workers() == []
        assert scheduler.starts.get(timeout=SECONDS).worker != one.worker
        job.remove()
        server.forget_job("mine")
        assert server.kept_jobs() == []
        with pytest.raises(rendezvous.RendezvousError, match="no job mine is kept"):
            server.forget_job("mine")


def test_offers_that_cannot_be_right(server, scheduler):
    job = scheduler.add(server, 1)
    with pytest.raises(ValueError, match="host a is offered with 0 slots"):
        job.offer_slots({"a": 0})
    with pytest.raises(ValueError, match=r"id: 'a\\nb' is no name"):
        scheduler.add(server, 1, id="a\nb")
    with pytest.raises(ValueError, match=r"the name of a host: 'a\\x1b' is no name"):
        job.offer_slots({"a\x1b": 1})
    with pytest.raises(ValueError, match="host a is offered twice"):
        job.offer_slots([rendezvous.Host("a"), rendezvous.Host("a")])
    with pytest.raises(ValueError, match="a's slots is 4294967297"):
        job.offer_slots({"a": 2**32 + 1})


@pytest.mark.parametrize(
    "wrong, message",
    [
        (lambda server, job: rendezvous.Server(7000), 'listen must be "address:port", or a list of such: Got 7000'),
        (lambda server, job: rendezvous.Server([7000]), "an address must be a str: Got 7000"),
        (lambda server, job: rendezvous.Server(state_dir=3), "state_dir must be a path: Got 3"),
        (lambda server, job: server.add_job("2"), "np must be a whole number: Got '2'"),
        (
            lambda server, job: server.add_job(2, start_timeout="3"),
            "start_timeout must be a number of seconds: Got '3'",
        ),
        (lambda server, job: server.add_job(2, id=7), "id must be a str: Got 7"),
        (
            lambda server, job: server.add_job(2, start_worker=1, stop_worker=2),
            "start_worker must be a function: Got 1",
        ),
        (lambda server, job: server.add_job(2, finished="f"), "finished must be a function: Got 'f'"),
        (lambda server, job: job.offer_slots({5: 1}), "a host's name must be a str: Got 5"),
        (lambda server, job: job.offer_slots({"a": "2"}), "a's slots must be a whole number: Got '2'"),
        (
            lambda server, job: job.offer_slots(["a"]),
            "hosts must be a dict of numbers of slots by name, or a list of rendezvous.Host: Got 'a'",
        ),
        (
            lambda server, job: job.offer_slots(3),
            "hosts must be a dict of numbers of slots by name, or a list of rendezvous.Host: Got 3",
        ),
        (lambda server, job: job.report_exit(1, None), "returncode must be a whole number: Got None"),
        (lambda server, job: job.drain("a", "soon"), "grace must be a number of seconds: Got 'soon'"),
    ],
)
def test_arguments_of_wrong_types_are_one_line(server, scheduler, wrong, message):
    job = scheduler.add(server, 1)
    with pytest.raises(TypeError) as raised:
        wrong(server, job)
    assert str(raised.value) == message


@pytest.mark.parametrize("worker", [-1, 2**64, 2**70])
def test_numbers_that_c_would_change_are_refused(server, scheduler, worker):
    job = scheduler.add(server, 1)
    for report in (
        lambda: job.report_started(worker, 1),
        lambda: job.report_exit(worker),
        lambda: job.start_again(worker),
    ):
        with pytest.raises(ValueError, match=f"^worker is {worker}, and must be from 0 to"):
            report()
    with pytest.raises(ValueError, match=f"^pid is {2**63}, and must be from"):
        job.report_started(1, 2**63)
    with pytest.raises(TypeError):
        job.start_again("1")


def test_a_program_may_leave_the_folder_that_its_state_directory_is_named_from(tmp_path, monkeypatch):
    """A program that becomes a daemon does this."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "elsewhere").mkdir()
    with rendezvous.Server(state_dir="state") as server:
        server.add_job(1, id="one").remove()
        monkeypatch.chdir(tmp_path / "elsewhere")
        assert [kept.id for kept in server.kept_jobs()] == ["one"]
        server.add_job(1, id="two").remove()
        server.forget_job("one")
    with rendezvous.Server(state_dir=tmp_path / "state") as server:
        assert [(kept.id, kept.problem) for kept in server.kept_jobs()] == [("two", None)]
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_output_of_any_bytes_is_shown(server, scheduler):
    started = queue.Queue()
    job = server.add_job(1, start_worker=started.put, stop_worker=print, finished=scheduler.results.put)
    job.offer_slots({"here": 1})
    job.report_exit(started.get(timeout=SECONDS).worker, start_error="no\0such \udc80program")
    assert "no\ufffdsuch ?program" in scheduler.results.get(timeout=SECONDS).summary


def test_what_has_ended_says_so(server, scheduler):
    job = scheduler.add(server, 1, id="mine")
    with pytest.raises(rendezvous.RendezvousError, match="there is a job mine") as error:
        scheduler.add(server, 1, id="mine")
    assert error.value.code == 6
    job.remove()
    job.remove()
    with pytest.raises(rendezvous.RendezvousError, match="job mine has ended"):
        job.describe()
    server.close()
    with pytest.raises(rendezvous.RendezvousError, match="the server has ended"):
        server.metrics()


def test_a_callback_cannot_remove_its_job(server):
    said = queue.Queue()

    def finished(_):
        for function in (job.remove, server.close):
            try:
                function()
            except rendezvous.RendezvousError as error:
                said.put(str(error))

    job = server.add_job(1, start_worker=print, stop_worker=print, finished=finished)
    job.request_stop()
    assert [said.get(timeout=SECONDS) for _ in range(2)] == [
        "to remove a job in a callback would wait for itself; let another thread do it"
    ] * 2
    assert job.describe()["state"] == "failed"


def test_threads_that_use_a_job_while_it_is_removed(server, scheduler):
    for _ in range(20):
        job = scheduler.add(server, 1)
        ended = []

        def use(job=job, ended=ended):
            try:
                while True:
                    job.describe()
            except rendezvous.RendezvousError as error:
                ended.append(str(error))

        threads = [threading.Thread(target=use) for _ in range(3)]
        for thread in threads:
            thread.start()
        job.remove()
        for thread in threads:
            thread.join()
        assert ended == [f"job {job.id} has ended"] * 3


def test_program_that_closes_nothing_ends_cleanly():
    code = (
        "from horovod import rendezvous; server = rendezvous.Server();"
        "job = server.add_job(1, max_np=2, start_worker=print, stop_worker=print, notice=lambda n: None);"
        "job.offer_slots({str(n): 1 for n in range(50)}); print('end\\n', end='')"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=SECONDS)
    assert (result.returncode, result.stderr) == (0, "") and "end\n" in result.stdout


def test_a_forked_child_leaves_the_server_to_its_parent(server, scheduler):
    job = scheduler.add(server, 1)
    child = os.fork()
    if child == 0:
        server.close()
        try:
            job.describe()
        except rendezvous.RendezvousError:
            os._exit(0)
        os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    assert job.describe()["state"] == "forming"


def command(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "horovod.rendezvous", *arguments], capture_output=True, text=True, timeout=SECONDS
    )


def test_folders_for_programs_in_c():
    result = command("--include-dir")
    assert result.returncode == 0 and (Path(result.stdout.strip()) / "horovod/rendezvous.hpp").is_file()
    result = command("--library-dir")
    assert (Path(result.stdout.strip()) / "libhvd_rendezvous.so").is_file()
    assert command().returncode == 2
    result = command("--cmake-dir")
    assert (result.returncode, result.stderr.count("\n")) in ((0, 0), (2, 1)), result.stderr


def test_limits_of_a_running_job(server, scheduler):
    job = scheduler.add(server, 1, max_np=1)
    job.offer_slots({"here": 3})
    scheduler.starts.get(timeout=SECONDS)
    with pytest.raises(ValueError, match="max_np is 2, and must be from 3"):
        job.set_limits(3, 2)
    job.set_limits(1, 3)
    for _ in range(2):
        scheduler.starts.get(timeout=SECONDS)
    assert (job.describe()["min_np"], job.describe()["max_np"]) == (1, 3)
    with pytest.raises(rendezvous.RendezvousError, match="not elastic"):
        server.add_job(1).set_limits(1, 2)
