"""Processes of a test: started, read line by line, waited for by event and never by time alone."""

import os
import re
import select
import subprocess
import threading
import time

GUARD = 60  # seconds; only ends a wait for what will never come, so it is long enough for a busy machine


class Stream:
    """The output of a pipe so far, read by a separate thread."""

    def __init__(self, pipe):
        self._pipe = pipe
        self._text = ""
        self._ended = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self):
        for line in self._pipe:
            with self._changed:
                self._text += line
                self._changed.notify_all()
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    @property
    def text(self):
        with self._changed:
            return self._text

    def wait_for(self, pattern, timeout=GUARD, count=1):
        """The `count`th match of a regular expression, once it has been said. AssertionError with all that was said, if it was not."""
        deadline = time.monotonic() + timeout
        with self._changed:
            while True:
                found = list(re.finditer(pattern, self._text, re.M))
                if len(found) >= count:
                    return found[count - 1]
                left = deadline - time.monotonic()
                if self._ended or left <= 0:
                    raise AssertionError(
                        f"{'ended' if self._ended else f'{timeout} s passed'} without /{pattern}/ in:\n{self._text}"
                    )
                self._changed.wait(left)

    def wait_until(self, condition, timeout, what):
        """Until `condition(text)` holds, which is looked at after each new line. AssertionError with all that was said, if it does not."""
        deadline = time.monotonic() + timeout
        with self._changed:
            while not condition(self._text):
                left = deadline - time.monotonic()
                if self._ended or left <= 0:
                    raise AssertionError(
                        f"{'ended' if self._ended else f'{timeout} s passed'} without {what} in:\n{self._text[-20000:]}"
                    )
                self._changed.wait(left)

    def wait_end(self, timeout):
        self._thread.join(timeout)


class Running:
    """A started command. `pid` is the command's own (not that of a wrapper that brought it somewhere)."""

    def __init__(self, argv, find_pid=None, **options):
        options.setdefault("stdin", subprocess.DEVNULL)
        self.popen = subprocess.Popen(
            argv,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            start_new_session=True,
            **options,
        )
        self._find_pid = find_pid
        self.stdout = Stream(self.popen.stdout)
        self.stderr = Stream(self.popen.stderr)

    @property
    def pid(self):
        return self._find_pid(self.popen.pid) if self._find_pid else self.popen.pid

    def signal(self, number):
        os.kill(self.pid, number)

    def wait(self, timeout=GUARD):
        """Its exit code (negative: killed by that signal), with its output complete unless something else still holds the pipes."""
        try:
            code = self.popen.wait(timeout)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"still running after {timeout} s\n{self.everything()}") from None
        self.stdout.wait_end(5)
        self.stderr.wait_end(5)
        return code

    def everything(self):
        return f"--- stdout\n{self.stdout.text}--- stderr\n{self.stderr.text}---"

    def end(self):
        """Ends the process in any state, for a test's clean-up."""
        if self.popen.poll() is None:
            self.popen.kill()
            self.popen.wait()


def command_line(pid):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read().replace(b"\0", b" ").decode(errors="replace").strip()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def program(pid):
    """The path of what it runs; empty if it has gone or is a zombie."""
    try:
        return os.readlink(f"/proc/{pid}/exe")
    except (FileNotFoundError, ProcessLookupError):
        return ""


def is_alive(pid):
    """Neither gone nor a zombie."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def all_pids():
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def environment_of(pid):
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return file.read()
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return b""


def pids_with(mark):
    """Processes whose environment has the bytes `mark`: all that came from a command that was started with it."""
    return [pid for pid in all_pids() if mark in environment_of(pid) and is_alive(pid)]


def wait_until_none(list_pids, timeout=GUARD):
    """Waits until list_pids() is empty; each exit wakes it. Returns what is left at the deadline: [] or ["PID COMMAND", ...]."""
    deadline = time.monotonic() + timeout
    while True:
        pids = list_pids()
        if not pids:
            return []
        left = deadline - time.monotonic()
        if left <= 0 or not _wait_for_an_exit(pids, left):
            return [f"{pid} {command_line(pid)}" for pid in list_pids()]


def _wait_for_an_exit(pids, timeout):
    poller, descriptors = select.poll(), []
    try:
        for pid in pids:
            try:
                descriptors.append(os.pidfd_open(pid))
            except ProcessLookupError:
                return True
            poller.register(descriptors[-1], select.POLLIN)
        return bool(poller.poll(timeout * 1000))
    finally:
        for descriptor in descriptors:
            os.close(descriptor)
