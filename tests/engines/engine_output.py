"""Where the output of an engine's jobs goes, for tests that read along."""

import os
import sys

from processes import Stream


class Output:
    """The output of a job's processes: a stream to write to, and a Stream to read along with."""

    def __init__(self):
        reader, writer = os.pipe()
        self._writer = os.fdopen(writer, "w")
        self.stream = Stream(os.fdopen(reader, errors="replace"))

    def write(self, text):
        self._writer.write(text)

    def flush(self):
        self._writer.flush()

    def close(self):
        self._writer.close()
        self.stream.wait_end(10)

    @property
    def text(self):
        return self.stream.text


def check_order_of(paths):
    """That a process's sys.path has the folders of this one's, in their order."""
    own = list(dict.fromkeys(path or os.getcwd() for path in sys.path))
    assert [path for path in paths if path in own] == own
