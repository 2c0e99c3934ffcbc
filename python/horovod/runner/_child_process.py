"""Child processes of this one, with threads that read their output."""

import contextlib
import os
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import IO, Callable, Optional


class ChildProcess(subprocess.Popen[bytes]):
    """A child of this process. :meth:`wait` returns when it has ended and its output was read.

    Thread-safe, except that :meth:`read` must be called before another thread waits. Its owner must call :meth:`wait` or
    :meth:`wait_or_kill`, so that no zombie remains. It does not end with this process by itself: give it a pipe or a socket whose
    end it notices.

    Args:
      command: the program and its arguments.
      env: its environment; None: this process's.
      stdin: DEVNULL, PIPE or a descriptor, as of :class:`subprocess.Popen`; None: this process's own. The same for the next two.
      stdout: read a pipe by :meth:`read`, or on a thread of your own.
      stderr: as `stdout`.
      pass_fds: descriptors that it inherits.
      start_new_session: whether Ctrl-C at a terminal does not reach it.

    Raises OSError if it can't be started.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        env: Optional[Mapping[str, str]] = None,
        stdin: Optional[int] = subprocess.DEVNULL,
        stdout: Optional[int] = None,
        stderr: Optional[int] = None,
        pass_fds: Sequence[int] = (),
        start_new_session: bool = True,
    ) -> None:
        self._readers: list[threading.Thread] = []
        super().__init__(
            command,
            env=env,
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            pass_fds=pass_fds,
            start_new_session=start_new_session,
        )

    def read(self, pipe: Optional[IO[bytes]], reader: Callable[[IO[bytes]], None], name: str) -> None:
        """Starts a thread with that name that calls `reader` with a pipe, and then closes the pipe.

        Args:
          pipe: `stdout` or `stderr`.
          reader: reads the pipe to its end. If it returns or raises earlier, the child's next write fails.
          name: the thread's name.
        """
        assert pipe is not None

        def run() -> None:
            with pipe:
                reader(pipe)

        self._readers.append(threading.Thread(target=run, name=name, daemon=True))
        self._readers[-1].start()

    def wait(self, timeout: Optional[float] = None) -> int:
        """Returns the exit code, -N if signal N ended the process, after the threads of :meth:`read` have ended.

        Raises subprocess.TimeoutExpired if the process still runs after `timeout` seconds.
        """
        code = super().wait(timeout)
        for reader in self._readers:
            reader.join()
        return code

    def wait_or_kill(self, seconds: float) -> int:
        """Waits, and kills the process if it still runs after `seconds`. Returns as :meth:`wait`."""
        try:
            return self.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            return self.wait()


@contextlib.contextmanager
def private_file(text: str) -> Iterator[int]:
    """Returns the descriptor of a file in memory that contains `text` and that only this user can read. A child that inherits it
    reads /proc/self/fd/N.
    """
    descriptor = os.memfd_create("horovod")
    try:
        os.fchmod(descriptor, 0o600)
        os.write(descriptor, text.encode())
        os.lseek(descriptor, 0, os.SEEK_SET)
        yield descriptor
    finally:
        os.close(descriptor)
