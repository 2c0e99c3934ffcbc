"""A pseudo terminal for tests: records the bytes sent to it, and shows the resulting screen."""

import fcntl
import os
import re
import struct
import subprocess
import termios
import threading
import time

from processes import GUARD


def screen(sent):
    """The lines that a terminal shows (without those that are empty at the end) after it was sent this, as far as our programs know terminals."""
    lines, row, column = [""], 0, 0
    for part in re.findall(r"\x1b\[[0-9;]*[A-Za-z]|.", sent, re.S):
        if part == "\r":
            column = 0
        elif part == "\n":
            row += 1
            lines += [""] * (row + 1 - len(lines))
        elif part == "\x1b[J":
            lines[row] = lines[row][:column]
            del lines[row + 1 :]
        elif part == "\x1b[K":
            lines[row] = lines[row][:column]
        elif part == "\x1b[A":
            row = max(0, row - 1)
        elif part == "\x1b[H":
            row = column = 0
        elif part.isprintable():
            lines[row] = lines[row][:column].ljust(column) + part + lines[row][column + 1 :]
            column += 1
        else:
            raise AssertionError(f"{part!r} in {sent!r}")
    while lines and not lines[-1]:
        lines.pop()
    return lines


class Terminal:
    """Runs a command whose standard streams and controlling terminal it is. `redirect` sends some elsewhere, as for subprocess.Popen."""

    def __init__(self, argv, columns=200, redirect=None, **options):
        self._keyboard, self._screen = os.openpty()
        fcntl.ioctl(self._screen, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        streams = {"stdin": self._screen, "stdout": self._screen, "stderr": self._screen, **(redirect or {})}
        screen_fd = self._screen
        self.popen = subprocess.Popen(
            argv,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(screen_fd, termios.TIOCSCTTY, 0),
            **streams,
            **options,
        )
        self._sent = ""
        self._changed = threading.Condition()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        try:
            while data := os.read(self._keyboard, 65536):
                with self._changed:
                    self._sent += data.decode()
                    self._changed.notify_all()
        except OSError:  # no process has it open any more
            pass

    @property
    def sent(self):
        with self._changed:
            return self._sent

    @property
    def lines(self):
        return screen(self.sent)

    def wait_until(self, condition, timeout=GUARD):
        """Until `condition(lines shown)` holds. AssertionError with all that was sent, if it does not."""
        deadline = time.monotonic() + timeout
        with self._changed:
            while not condition(screen(self._sent)):
                left = deadline - time.monotonic()
                if left <= 0 or not self._changed.wait(left):
                    raise AssertionError(f"{timeout} s passed: {self._sent!r}")

    def type(self, keys):
        os.write(self._keyboard, keys)

    def stop_output(self):
        """As ^S does, but sure to be so when it returns, and not undone by ^C."""
        termios.tcflow(self._screen, termios.TCOOFF)

    def resume_output(self):
        termios.tcflow(self._screen, termios.TCOON)

    def wait(self, timeout=GUARD):
        """Waits for the command; returns its exit code after all of its output is shown."""
        try:
            code = self.popen.wait(timeout)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"still running after {timeout} s: {self.sent!r}") from None
        # What is written last comes last.
        os.write(self._screen, b"<end>\n")
        self.wait_until(lambda lines: lines and lines[-1].endswith("<end>"))
        with self._changed:
            self._sent = self._sent[: self._sent.rindex("<end>")]
        return code

    def close(self):
        if self.popen.poll() is None:
            self.popen.kill()
            self.popen.wait()
        os.close(self._screen)  # the reading thread finds its end
