"""Parses the output of the processes of tests/cluster/scripts/elastic_train.py, and checks that it is consistent."""

import json
from collections import Counter

import world_checks


class _Text:
    def __init__(self, text):
        self.text = text


class TrainingLog:
    """Reads along with a job's output (a processes.Stream), whose lines may have prefixes such as `[3]<stdout>:`. `job` is the
    script's --job, if several share the output."""

    def __init__(self, stream, job=None):
        self._stream = stream
        self._job = job
        self._read = 0
        self._entries = []
        self._last_step = 0
        self._newest_world = 0
        self._newest_members = {}  # rank: (size, pid)

    @classmethod
    def of_files(cls, paths):
        """What the processes have written with --log-dir, as it is now. A process that was killed may have left half a line."""
        lines = [line for path in paths for line in path.read_text().splitlines(keepends=True)]
        return cls(_Text("".join(f"[?]<file>:{line}" for line in lines if line.endswith("}\n"))))

    def _read_on(self, text):
        end = text.rfind("\n") + 1
        for line in text[self._read : end].splitlines():
            prefix, brace, rest = line.partition("{")
            if brace and (not prefix or prefix.endswith(">:")):
                entry = json.loads(brace + rest)
                if entry.get("job") == self._job:
                    self._take(entry)
            else:
                assert '{"time": ' not in line, f"two lines in one, which would be missed: {line!r}"
        self._read = end

    def _take(self, entry):
        self._entries.append(entry)
        self._last_step = max(self._last_step, entry.get("step", 0))
        if "rank" in entry and entry.get("world", 0) >= self._newest_world:
            if entry["world"] > self._newest_world:
                self._newest_world, self._newest_members = entry["world"], {}
            self._newest_members[entry["rank"]] = entry["size"], entry["pid"]

    def all(self, key):
        """The entries so far that have this key, in order of time."""
        self._read_on(self._stream.text)
        return sorted((entry for entry in self._entries if key in entry), key=lambda entry: entry["time"])

    def wait_until(self, condition, timeout, what):
        """Until `condition()` holds, which is looked at after each new line."""

        def look(text):
            self._read_on(text)
            return condition()

        self._stream.wait_until(look, timeout, what)

    def worlds(self):
        """By epoch: (size, steps committed when it began), as all its members say alike."""
        worlds = {}
        for entry in self.all("world"):
            if "rank" in entry:
                worlds.setdefault(entry["world"], set()).add((entry["size"], entry["steps"]))
        for world, views in worlds.items():
            assert len(views) == 1, f"members of epoch {world} do not agree: {views}"
        return {world: next(iter(views)) for world, views in sorted(worlds.items())}

    def _steps_by_process(self):
        """By (world, process id): the first and the last step, and the steps between them that are not in the log."""
        steps = {}
        for entry in self.all("step"):
            steps.setdefault((entry["world"], entry["pid"]), set()).add(entry["step"])
        return {
            process: (min(seen), max(seen), sorted(set(range(min(seen), max(seen))) - seen))
            for process, seen in steps.items()
        }

    def last_step(self):
        self._read_on(self._stream.text)
        return self._last_step

    def epochs(self):
        """How many epochs have begun."""
        return 1 + max(entry["epoch"] for entry in self.all("epoch"))

    def trains_with(self, size):
        """Whether all members of the newest world have begun, and there are so many."""
        self._read_on(self._stream.text)
        return {rank: said for rank, (said, _) in self._newest_members.items()} == dict.fromkeys(range(size), size)

    def has_trained_with(self, size, after):
        """Whether a world later than epoch `after` had this size: for worlds that may be over before a busy test looks."""
        return any(said == size for world, (said, _) in self.worlds().items() if world > after)

    def forget(self):
        """Drops old entries, for long runs that look at the present only."""
        self._entries = []

    def process_ids(self):
        """By rank, in the newest world."""
        self._read_on(self._stream.text)
        return {rank: pid for rank, (_, pid) in self._newest_members.items()}

    def resets(self):
        """How often a process has said that it goes into another world."""
        return sum(entry["event"] == "reset" for entry in self.all("event"))

    def newest_world(self):
        self._read_on(self._stream.text)
        return self._newest_world

    def check_samples(self, samples, epochs):
        """Every sample counts once in every epoch: what was rolled back was dealt again, nothing else was, and all processes
        have the same weights; and there was one world at a time (world_checks). Returns how many steps were rolled back."""
        world_checks.check(self)
        worlds = self.worlds()
        next_start = {}
        for world, following in zip(list(worlds), [*list(worlds)[1:], None]):
            next_start[world] = worlds[following][1] if following else None
        counts = {epoch: Counter() for epoch in range(epochs)}
        rolled_back = set()
        for entry in self.all("step"):
            limit = next_start[entry["world"]]
            if limit is not None and entry["step"] > limit:
                rolled_back.add((entry["world"], entry["step"]))
                continue
            counts[entry["epoch"]].update(entry["samples"])
        for epoch, counter in counts.items():
            missing = [sample for sample in range(samples) if counter[sample] == 0]
            assert not missing, (
                f"epoch {epoch}: samples {missing[:10]} were never trained on; worlds {worlds}, steps {self._steps_by_process()}"
            )
            # The last batch of an epoch is filled up from the front, by less than one sample a rank.
            extra = sum(counter.values()) - samples
            largest = max(size for size, _ in worlds.values())
            assert extra < largest, (
                f"epoch {epoch}: {extra} samples too many: {[s for s in counter if counter[s] > 1][:20]}"
            )
        for world, _ in Counter(world for world, _ in rolled_back).items():
            lost = {step for w, step in rolled_back if w == world}
            assert len(lost) <= 1, f"epoch {world}: steps {sorted(lost)} were rolled back, more than one commit"
        digests = {entry["digest"] for entry in self.all("done")}
        assert len(digests) == 1, f"the weights differ: {digests}"
        return len(rolled_back)
