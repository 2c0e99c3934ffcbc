"""Several agents that join from one machine: their workers share its local ranks and its memory, and each agent comes and goes by itself."""

import json
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from joinable import Joinable

JOB = Path(__file__).resolve().parent / "jobs" / "places.py"


class JoinedJob:
    """A horovod-rendezvousd and agents of two slots each, all on this machine."""

    def __init__(self, directory):
        self.joinable = Joinable(directory)
        self.agents = {}
        self._known = {}  # the number of places that were asked for, by host and size

    def start_daemon(self, *limits):
        self.daemon, self._address = self.joinable.start_daemon("token", *limits)

    def join(self, host, *flags, **environment):
        agent = ["horovod-agent", "--join", self._address, "--token-file", "token", "--host", host, "--slots", "2"]
        self.agents[host] = self.joinable.start(*agent, *flags, "--", sys.executable, JOB, "end", **environment)

    def places(self, host, size):
        """Those of the agent's two workers in the next world of this size. Newcomers may come one by one, and so in a smaller one at first."""
        pattern = rf'place (\{{"rank": \d+, "size": {size},.*\}})'
        known = self._known.setdefault((host, size), 0)
        self.agents[host].stdout.wait_for(pattern, 90, count=known + 2)
        self._known[host, size] = known + 2
        said = re.findall(pattern, self.agents[host].stdout.text)[known : known + 2]
        return sorted((json.loads(place) for place in said), key=lambda place: place["rank"])

    def status(self):
        command = [
            "horovodrun",
            "status",
            "--connect",
            self._address,
            "--token-file",
            self.joinable.directory / "token",
        ]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout

    def finish(self):
        (self.joinable.directory / "end").touch()
        for running in [*self.agents.values(), self.daemon]:
            assert running.wait(60) == 0, running.everything()


@pytest.fixture
def job(tmp_path):
    job = JoinedJob(tmp_path)
    yield job
    job.joinable.close()


def show(places, *names):
    return [tuple(place[name] for name in names) for place in places]


def test_static_job(job, tmp_path):
    job.start_daemon("--np", "4")
    job.join("a", HOROVOD_TIMELINE=str(tmp_path / "t.json"))
    job.join("b", HOROVOD_TIMELINE=str(tmp_path / "t.json"))
    places = sorted(job.places("a", 4) + job.places("b", 4), key=lambda place: place["rank"])
    assert show(places, "rank", "local_rank", "local_size", "cross_rank", "cross_size") == [
        (rank, rank, 4, 0, 1) for rank in range(4)
    ]
    assert [place["started"] for place in places] == [[rank, 4] for rank in range(4)]
    assert {place["host"] for place in places[:2]} != {place["host"] for place in places[2:]}
    job.finish()
    events = json.loads((tmp_path / "t.json").read_text())
    for rank in range(4):
        names = [event["name"] for event in events if event["pid"] == rank and event["ph"] == "X"]
        assert names.count("SHM_ALLREDUCE") == names.count("ALLREDUCE") > 0, "the agents' workers do not share memory"


def test_elastic_job(job):
    job.start_daemon("--np", "4", "--min-np", "2", "--max-np", "4")
    job.join("a")
    job.join("b")
    first = job.places("a", 4) + job.places("b", 4)
    assert sorted(show(first, "local_rank", "local_size", "cross_size")) == [(rank, 4, 1) for rank in range(4)]

    assert re.search("same machine as [ab]$", job.status(), re.M)

    job.agents["b"].signal(signal.SIGTERM)
    assert job.agents.pop("b").wait(60) == 0
    alone = job.places("a", 2)
    assert show(alone, "rank", "local_rank", "local_size", "cross_size") == [(0, 0, 2, 1), (1, 1, 2, 1)]
    assert set(show(alone, "pid")) <= set(show(first, "pid")), "only the agent's own workers leave"

    job.join("c")
    newcomers = job.places("c", 4)
    stayed = job.places("a", 4)
    assert show(stayed, "rank", "local_rank", "pid") == show(alone, "rank", "local_rank", "pid")
    assert sorted(show(newcomers, "local_rank", "local_size", "cross_size")) == [(2, 4, 1), (3, 4, 1)]
    job.finish()


def test_names_of_machines_count(job):
    """As where each agent sees only the GPUs that are its own."""
    job.start_daemon("--np", "4")
    job.join("a", "--machine", "one")
    job.join("b", "--machine", "two")
    places = job.places("a", 4) + job.places("b", 4)
    assert sorted(show(places, "cross_rank", "local_rank", "local_size", "cross_size")) == [
        (cross_rank, local_rank, 2, 2) for cross_rank in (0, 1) for local_rank in (0, 1)
    ]
    job.finish()
