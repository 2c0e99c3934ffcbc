"""A running horovodrun as a child of this process, with its output on this process's streams."""

import codecs
import contextlib
import os
import selectors
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from subprocess import PIPE
from typing import IO, Any, Optional

from horovod.runner._child_process import ChildProcess
from horovod.runner._programs import find_program
from horovod.runner._python import with_package

_ERROR = "horovodrun: error: "
_TAIL = 1 << 13  # characters that are kept
_STOP_SECONDS = 30.0  # for horovodrun to stop its workers, which takes it much less


class Launcher:
    """A horovodrun that ends with this process, however this process ends.

    Args:
      arguments: horovodrun's.
      pass_fds: descriptors that it gets.
      python: the Python of the workers, by default that of this process.
    """

    def __init__(self, arguments: Sequence[str], pass_fds: Sequence[int] = (), python: Optional[str] = None) -> None:
        # Its stdin ends with this process. Ctrl-C at a terminal is for this process alone, which passes it on: two of them would leave
        # the workers no time. This object reads the pipes on the caller's thread, so that exceptions of its streams reach the caller.
        self._relays = [_Relay(sys.stdout, 1), _Relay(sys.stderr, 2)]
        self._process = ChildProcess(
            [find_program("horovodrun"), "--end-with-stdin", *arguments],
            env=with_package(os.environ, python),
            stdin=PIPE,
            stdout=self._relays[0].child_end,
            stderr=self._relays[1].child_end,
            pass_fds=pass_fds,
        )
        self._relays[0].take(self._process.stdout)
        self._relays[1].take(self._process.stderr)

    def wait(self) -> int:
        """Returns its exit status, after it has ended and its output was passed on."""
        self._relay(None)
        return self._process.wait()

    def error(self) -> str:
        """Returns horovodrun's last line about an error, without its prefix; "" if there is none, or if its stderr is this process's own."""
        lines = [line for line in self._relays[1].tail.splitlines() if line.startswith(_ERROR)]
        return lines[-1].removeprefix(_ERROR) if lines else ""

    def stop(self) -> None:
        """Ends it if it still runs."""
        # Every further Ctrl-C is passed on, too: the second one makes horovodrun hurry.
        while self._process.poll() is None:
            try:
                self._process.send_signal(signal.SIGINT)
                self._relay(_STOP_SECONDS)
                self._process.wait_or_kill(0)
            except KeyboardInterrupt:
                continue
        if self._process.stdin is not None:
            self._process.stdin.close()

    def _relay(self, patience: Optional[float]) -> None:
        """Passes output on until the process has ended, or for `patience` seconds."""
        deadline = None if patience is None else time.monotonic() + patience
        with selectors.DefaultSelector() as selector, _ending_of(self._process) as ended:
            selector.register(ended, selectors.EVENT_READ)
            open_ones = []
            for relay in self._relays:
                if relay.pipe is not None:
                    open_ones.append(relay)
                    selector.register(relay.pipe, selectors.EVENT_READ, relay)
            while True:
                left = None if deadline is None else max(0.0, deadline - time.monotonic())
                ready = [key for key, _ in selector.select(left)]
                if not ready:
                    return
                for key in ready:
                    if key.data is not None and not key.data.pass_on():
                        selector.unregister(key.fileobj)
                if any(key.data is None for key in ready):
                    for relay in open_ones:
                        relay.finish()
                    return


class _Relay:
    """The target of one of the two streams: the descriptor itself if Python's stream writes to that, or otherwise the stream,
    through a pipe.
    """

    def __init__(self, stream: Any, number: int) -> None:
        self._stream = stream
        self.pipe: Optional[IO[bytes]] = None
        self.tail = ""  # the last of what was passed on
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self.child_end = None if _is_descriptor(stream, number) else PIPE
        if stream is not None:
            stream.flush()  # earlier output comes first

    def take(self, pipe: Optional[IO[bytes]]) -> None:
        self.pipe = pipe
        if pipe is not None:
            os.set_blocking(pipe.fileno(), False)

    def pass_on(self) -> bool:
        """Passes available output on. Returns False if there will be no more, or none just now."""
        if self.pipe is None:
            return False
        try:
            data = os.read(self.pipe.fileno(), 1 << 16)
        except BlockingIOError:
            return False
        text = self._decoder.decode(data, final=not data)
        self.tail = (self.tail + text)[-_TAIL:]
        stream, self._stream = self._stream, None  # one that fails is not tried again
        if stream is not None:
            stream.write(text)
            stream.flush()
            self._stream = stream
        return bool(data)

    def finish(self) -> None:
        """Passes the rest on. It does not wait for output of other processes that have the pipe as well."""
        while self.pass_on():
            pass
        if self.pipe is not None:
            self.pipe.close()
            self.pipe = None


def _is_descriptor(stream: Any, number: int) -> bool:
    """Returns whether `stream` writes to that descriptor of the process. None, as in programs without a console, counts as such a
    stream.
    """
    if stream is None:
        return True
    try:
        return bool(stream.fileno() == number)
    except (AttributeError, OSError, ValueError):
        return False


@contextlib.contextmanager
def _ending_of(process: ChildProcess) -> Iterator[int]:
    """Returns a descriptor that is readable when the process has ended."""
    pidfd = os.pidfd_open(process.pid)
    try:
        yield pidfd
    finally:
        os.close(pidfd)
