"""Parses the output and logs of a job of tools/bench/recovery.py into the times of its events."""

import json
import re
import threading
import time
from datetime import datetime

DEADLINE = 60.0  # seconds for a recovery, and for a newcomer
RUNTIME_LINE = re.compile(r"([-\d]+ [:\d]+\.\d{6}) horovod\[(\d+)\] debug: world (\d+): (\w+)")


class NotFound(Exception):
    """An expected event did not occur in time."""


class Story:
    """What a job says. Takes little time for each line, whatever came before: the machine is the workers'. Thread-safe."""

    def __init__(self):
        self._changed = threading.Condition()
        self._tail = []  # the last lines, for errors
        self.members = {}  # world: {rank: (host, pid)}
        self.sizes = {}  # world: ranks
        self.times = {}  # ((host, pid), what): of the first time since forget()
        self.world_times = {}  # (world, rank, what): when
        self.first_steps = {}  # ((host, pid), world): when
        self.last_steps = {}  # the same
        self.ready = {}  # (host, pid): when its script could train, and the seconds of its hvd.init()
        self.killed = set()
        self.last_step = 0

    def read(self, stream):
        """Reads an output stream of the job to its end, on a separate thread."""
        threading.Thread(target=self._read, args=(stream,), daemon=True).start()

    def _read(self, stream):
        with stream:
            for line in stream:
                with self._changed:
                    self._take(line)
                    self._changed.notify_all()

    def _take(self, line):
        self._tail = self._tail[-40:] + [line]
        brace = line.find("{")
        if brace >= 0 and line.endswith("}\n"):
            return self._take_entry(json.loads(line[brace:]))
        said = RUNTIME_LINE.search(line)
        if said:
            when, rank, world, what = said.groups()
            self.world_times[int(world), int(rank), what] = datetime.strptime(when, "%Y-%m-%d %H:%M:%S.%f").timestamp()

    def _take_entry(self, entry):
        process, when = (entry["host"], entry["pid"]), entry["time"]
        if "ready" in entry:
            self.ready[process] = when, entry["init_seconds"]
        elif "rank" in entry and "world" in entry:
            world = entry["world"]
            self.members.setdefault(world, {})[entry["rank"]] = process
            self.sizes[world] = entry["size"]
            self.world_times[world, entry["rank"], "training"] = when
        elif entry.get("event") == "stepped":
            self.last_step = max(self.last_step, entry["step"])
            self.first_steps.setdefault((process, entry["world"]), when)
            self.last_steps[process, entry["world"]] = when
        elif "event" in entry:
            self.times.setdefault((process, entry["event"]), when)

    def forget(self):
        """Forgets the times recorded so far, so that they are recorded anew."""
        with self._changed:
            self.times.clear()

    def wait_for(self, find, what, seconds=DEADLINE):
        """The first true value of find(), which is called after each line."""
        deadline = time.monotonic() + seconds
        with self._changed:
            while not (found := find()):
                left = deadline - time.monotonic()
                if left <= 0:
                    raise NotFound(f"no {what} within {seconds:g} s; the job's last lines:\n{''.join(self._tail)}")
                self._changed.wait(left)
            return found

    def newest_world(self):
        return max(self.members, default=0)

    def full_world(self, size):
        """The newest world, if all of its members train and are so many; else 0."""
        world = self.newest_world()
        return world if world and self.sizes[world] == size == len(self.members[world]) else 0

    def spares(self):
        """How many processes are ready, but not in the newest world."""
        return len(self.ready.keys() - self.killed - set(self.members[self.newest_world()].values()))

    def stepped_after(self, process, world):
        """The first world after this one in which the process has done a step; 0: none."""
        return min((w for p, w in self.first_steps if p == process and w > world), default=0)


class EventLog:
    """horovodrun's, read along."""

    def __init__(self, path):
        self._path = path
        self._at = 0

    def new_entries(self):
        with open(self._path) as file:
            file.seek(self._at)
            entries = [json.loads(line) for line in file]
            self._at = file.tell()
        for entry in entries:
            entry["time"] = datetime.fromisoformat(entry["time"].replace("Z", "+00:00")).timestamp()
        return entries
