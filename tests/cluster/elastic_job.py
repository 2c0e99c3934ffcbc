"""Elastic jobs on test hosts, as tests/cluster/scripts/elastic_train.py trains them."""

import contextlib
import os
import signal
import time
from pathlib import Path

import world_checks
from processes import GUARD, command_line, program
from training_log import TrainingLog

SCRIPTS = Path(__file__).resolve().parent / "scripts"
TRAIN = SCRIPTS / "elastic_train.py"


def workers_on(host):
    """Process ids of the training processes themselves, oldest first."""
    return sorted(
        pid
        for pid in host.find("elastic_train.py")
        if "python" in program(pid) and "elastic_train.py" in command_line(pid)
    )


def agents_on(host):
    return [pid for pid in host.find("horovod-agent") if program(pid).endswith("horovod-agent")]


class Training:
    """A training whose output is parsed while it runs. Subclasses start it; `running` is the process whose stdout is the job's."""

    def __init__(self, cluster, running):
        self.cluster = cluster
        self.running = running
        self.log = TrainingLog(running.stdout)

    def explain(self):
        return self.running.stderr.text

    def wait_for(self, condition, timeout, what):
        try:
            self.log.wait_until(condition, timeout, what)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.explain()}") from None

    def wait_for_step(self, step, timeout=GUARD):
        self.wait_for(lambda: self.log.last_step() >= step, timeout, f"step {step}")

    def wait_for_size(self, size, timeout=GUARD):
        """Waits until the newest world has this many members, all of them training."""
        self.wait_for(lambda: self.log.trains_with(size), timeout, f"world of {size}")

    def wait_for_steps(self, count, timeout=GUARD):
        self.wait_for_step(self.log.last_step() + count, timeout)

    def wait_for_world_after(self, world, timeout=GUARD):
        self.wait_for(lambda: self.log.newest_world() > world, timeout, f"world after epoch {world}")


class OpenEnded:
    """Mixed into a Training: it trains until told to end, and writes what it does where no trouble of network or agent loses it."""

    SAMPLES = 240

    @staticmethod
    def flags(cluster):
        logs, gates = cluster.directory / "logs", cluster.directory / "gates"
        logs.mkdir()
        gates.mkdir()
        return ["--samples", OpenEnded.SAMPLES, "--epochs", 1000000, "--digests", "--log-dir", logs, "--gates", gates,
                "--end-file", cluster.directory / "end"]  # fmt: skip

    @contextlib.contextmanager
    def held(self, point, rank):
        """While the process of `rank` is held at a point of a commit (see elastic_train.py): its entry that says so."""
        gate = self.cluster.directory / "gates" / f"{point}-{rank}"
        seen = sum(entry["event"] == "held" for entry in self.log.all("event"))
        os.mkfifo(gate)
        self.wait_for(
            lambda: sum(entry["event"] == "held" for entry in self.log.all("event")) > seen,
            60,
            f"rank {rank} held at {point}",
        )
        pipe = os.open(gate, os.O_WRONLY | os.O_NONBLOCK)
        gate.unlink()
        try:
            yield [entry for entry in self.log.all("event") if entry["event"] == "held"][-1]
            with contextlib.suppress(BrokenPipeError):  # it has gone
                os.write(pipe, b"!")
        finally:
            os.close(pipe)

    def begin_trouble(self):
        """From here on seconds_to_recover() counts."""
        self.trouble = time.time(), self.log.newest_world()

    def seconds_to_recover(self):
        """From begin_trouble() to the first step of a later world, and the longest time without a step since."""
        began, world = self.trouble
        steps = [entry for entry in self.complete_log().all("step") if entry["time"] > began]
        later = [entry["time"] - began for entry in steps if entry["world"] > world]
        times = [began, *(entry["time"] for entry in steps)]
        longest = max((after - before for before, after in zip(times, times[1:])), default=None)
        return min(later, default=None), longest

    def complete_log(self):
        return TrainingLog.of_files(sorted((self.cluster.directory / "logs").iterdir()))

    def tell_to_end(self):
        (self.cluster.directory / "end").touch()

    def check(self, from_the_start=False):
        """That the training adds up; returns the number of steps rolled back. `from_the_start`: the newest commit may have been lost."""
        log = self.complete_log()
        if from_the_start:
            return world_checks.check(log)
        epochs = 1 + max(entry["epoch"] for entry in log.all("step"))
        return log.check_samples(self.SAMPLES, epochs)


class FaultyJob(OpenEnded, Training):
    """horovodrun with the training script on the host "launcher"."""

    def __init__(self, cluster, flags=(), script_flags=(), hosts=("-H", "a:2,b:2"), size=4, framework="numpy"):
        command = ["horovodrun", "-np", size, "--min-np", "1", *hosts, *flags,
                   "python", TRAIN, "--framework", framework, *self.flags(cluster), *script_flags]  # fmt: skip
        super().__init__(cluster, cluster["launcher"].start_command(command, env={"OMP_NUM_THREADS": "1"}))

    def finish(self, timeout=120, **check):
        """Ends the training, which is to succeed, add up, and leave nothing. Returns as check()."""
        self.tell_to_end()
        assert self.running.wait(timeout) == 0, self.running.everything()
        rolled_back = self.check(**check)
        assert self.cluster.leftovers() == []
        return rolled_back


class JoinedJob(OpenEnded, Training):
    """A horovod-rendezvousd with a state directory on the host "launcher", and agents on other hosts that join it in this order."""

    def __init__(
        self, cluster, hosts=("a", "b"), flags=("--np", "4", "--min-np", "1"), state=None, env=(), script_flags=()
    ):
        self._flags = flags
        self._env = {"OMP_NUM_THREADS": "1", **dict(env)}
        self._directory = cluster.directory
        self._state = state or cluster.directory / "state"
        self._log = cluster.directory / "output"
        self._log.touch()
        self.daemon = None
        self._host = cluster["launcher"]
        self.start_daemon()
        super().__init__(cluster, self._host.start_command(["tail", "-n", "+1", "-f", self._log]))
        self._script_flags = [*self.flags(cluster), *script_flags]
        self.agents = {}
        for name in hosts:
            self.start_agent(name)

    def explain(self):
        return self.daemon.everything()

    def start_daemon(self):
        """For the first time, or again with what the last one has left behind."""
        self.daemon = self._host.start_command(
            ["horovod-rendezvousd", "--listen", f"{self._host.address}:0", *self._flags,
             "--token-file", self._directory / "token", "--state-dir", self._state]
        )  # fmt: skip
        try:
            self._address = self.daemon.stdout.wait_for(r"^\S+:\d+$").group()
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.daemon.stderr.text}") from None

    def kill_daemon(self, signal_number):
        self.daemon.signal(signal_number)
        self.daemon.wait()

    def start_agent(self, name):
        """For the first time, or again."""
        host = self.cluster[name]
        agent = ["horovod-agent", "--join", self._address, "--token-file", self._directory / "token",
                 "--slots", "2", "--host", host.name, "--", "python", TRAIN, "--framework", "numpy", *self._script_flags]  # fmt: skip
        self.agents[name] = host.start_command(["sh", "-c", 'exec "$@" >>"$0" 2>&1', self._log, *agent], env=self._env)

    def finish(self, timeout=120, **check):
        """Like FaultyJob.finish()."""
        self.tell_to_end()
        assert self.daemon.wait(timeout) == 0, self.explain()
        assert {agent.wait(60) for agent in self.agents.values()} == {0}, self._log.read_text()
        rolled_back = self.check(**check)
        self.running.signal(signal.SIGTERM)
        self.running.wait()
        assert self.cluster.leftovers() == []
        return rolled_back
