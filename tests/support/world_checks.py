"""Whether there was one world at a time, and each began with what had been committed: checked on what the processes of
tests/cluster/scripts/elastic_train.py have logged (TrainingLog.all()), with one clock for all hosts."""


def process(entry):
    return entry["host"], entry["pid"]


def members_of_worlds(begun):
    """By epoch: {rank: process} of `begun`, the entries of processes that begin to train in a world. No epoch may have two lists of
    members: no process may report the rank of another one, or another size."""
    worlds = {}
    for entry in begun:
        epoch, rank, size = entry["world"], entry["rank"], entry["size"]
        known_size, members = worlds.setdefault(epoch, (size, {}))
        assert size == known_size, f"epoch {epoch} has {known_size} members, or {size}"
        assert 0 <= rank < size, f"epoch {epoch} has {size} members and a rank {rank}"
        holder = members.setdefault(rank, process(entry))
        assert holder == process(entry), f"rank {rank} of epoch {epoch} is held by {holder} and {process(entry)}"
    for epoch, (_, members) in worlds.items():
        assert len(set(members.values())) == len(members), f"one process has two ranks in epoch {epoch}: {members}"
    return {epoch: members for epoch, (_, members) in worlds.items()}


def check_order_of_worlds(begun):
    """Nobody goes back to an older world."""
    newest = {}
    for entry in sorted(begun, key=lambda entry: entry["time"]):
        before = newest.get(process(entry), 0)
        assert entry["world"] > before, f"{process(entry)} begins epoch {entry['world']} after epoch {before}"
        newest[process(entry)] = entry["world"]


def check_steps_of_worlds(steps, members):
    """Once a world has completed a step, no older one completes another. A process may yet say so of the one step that it was in the
    middle of, if others have completed that before (it may have been stopped)."""
    completed = {}  # by epoch and step: when it was first said to be
    for entry in steps:
        assert process(entry) in members[entry["world"]].values(), (
            f"{process(entry)} trains in epoch {entry['world']}, which it did not begin"
        )
        key = entry["world"], entry["step"]
        completed[key] = min(completed.get(key, entry["time"]), entry["time"])
    began = {}
    for (epoch, _), time in completed.items():
        began[epoch] = min(began.get(epoch, time), time)

    def next_began(epoch):
        return min((time for later, time in began.items() if later > epoch), default=float("inf"))

    for (epoch, step), time in completed.items():
        late = time - next_began(epoch)
        assert late <= 0, f"epoch {epoch} completed step {step} {late:.3f} s after a later epoch had begun to train"
    said_late = set()
    for entry in steps:
        if entry["time"] > next_began(entry["world"]):
            assert process(entry) not in said_late, f"{process(entry)} trains on in epoch {entry['world']}"
            said_late.add(process(entry))


def check_commits(begun, steps):
    """Each world began with just what the newest world before it that got there had after that step: the model and the optimizer are the
    same to the bit. Does nothing without --digests. REQUIRES: members_of_worlds() finds no fault."""
    starts = {entry["world"]: entry["steps"] for entry in begun}
    weights = {}  # by step, in the present line of history
    trained = {}
    for entry in steps:
        if "weights" in entry:
            known = trained.setdefault(entry["world"], {}).setdefault(entry["step"], entry["weights"])
            assert known == entry["weights"], f"step {entry['step']} of epoch {entry['world']} has two results"
    for epoch in sorted(starts):
        start = starts[epoch]
        if start > 0 and any("weights" in entry for entry in begun):
            assert start in weights, f"epoch {epoch} begins after step {start}, which no rank has completed"
        weights = {step: digest for step, digest in weights.items() if step <= start}
        for entry in begun:
            if entry["world"] == epoch and start > 0 and "weights" in entry:
                assert entry["weights"] == weights[start], (
                    f"epoch {epoch} begins with other weights than those after step {start}"
                )
        weights.update(trained.get(epoch, {}))


def check(log):
    """All of the above, of a TrainingLog."""
    begun = [entry for entry in log.all("world") if "rank" in entry]
    steps = log.all("step")
    steps = [entry for entry in steps if entry["event"] == "stepped"]
    members = members_of_worlds(begun)
    check_order_of_worlds(begun)
    check_steps_of_worlds(steps, members)
    check_commits(begun, steps)
