"""What another process takes at most while it runs, sampled from /proc."""

import os
import re
import threading
from pathlib import Path
from typing import NamedTuple


class Peak(NamedTuple):
    """What a process took at most: MB, descriptors, processor seconds, child processes."""

    memory: float
    files: int
    cpu: float
    children: int


class Watch:
    """Samples a process in a thread of its own until it ends or `stop`."""

    def __init__(self, pid):
        self._directory = Path(f"/proc/{pid}")
        self._stopped = threading.Event()
        self.peak = Peak(0, 0, 0, 0)
        self._sample()
        self.first = self.peak
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self):
        while not self._stopped.wait(0.2):
            self._sample()

    def _sample(self):
        try:
            status = (self._directory / "status").read_text()
            ticks = (self._directory / "stat").read_text().rsplit(")", 1)[1].split()[11:13]
            files = len(os.listdir(self._directory / "fd"))
            threads = self._directory.glob("task/*/children")
            children = sum(len(thread.read_text().split()) for thread in threads)
        except OSError:
            return  # it has ended
        memory = re.search(r"VmHWM:\s+(\d+)", status)
        if memory:
            cpu = sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")
            files, children = max(files, self.peak.files), max(children, self.peak.children)
            self.peak = Peak(int(memory[1]) / 1024, files, cpu, children)

    def cpu(self):
        self._sample()
        return self.peak.cpu

    def stop(self):
        self._stopped.set()
        self._thread.join()
