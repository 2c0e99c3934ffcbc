"""Jobs of horovod-rendezvousd on this machine, and the processes of a test that join them.

joinable = Joinable(tmp_path)
daemon, address = joinable.start_daemon("token", "--np", "1")
agent = joinable.start("horovod-agent", "--join", address, "--token-file", "token", "--", "true")
joinable.close()
"""

import os

from processes import Running, pids_with, wait_until_none

_MARK = "JOINABLE_TEST"


class Joinable:
    """Starts processes in the working directory `directory`, by which it also finds them again."""

    def __init__(self, directory):
        self.directory = directory
        self._started = []

    def start(self, *command, **environment):
        own = {**os.environ, "OMP_NUM_THREADS": "1", _MARK: str(self.directory), **environment}
        self._started.append(Running([str(word) for word in command], env=own, cwd=self.directory))
        return self._started[-1]

    def start_daemon(self, token, *limits):
        """Returns it, and the address at which it listens. `token` is the name of its file."""
        daemon = self.start("horovod-rendezvousd", "--listen", "127.0.0.1:0", "--token-file", token, *limits)
        return daemon, daemon.stdout.wait_for(r"^(127\.0\.0\.1:\d+)$").group(1)

    def close(self):
        """Ends what runs still. Nothing that it has started may be left."""
        for running in self._started:
            running.end()
        assert wait_until_none(lambda: pids_with(f"{_MARK}={self.directory}\0".encode())) == []
