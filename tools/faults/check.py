"""Checks the logs of tools/faults/worker.py: which commits that had returned are gone, and how long nothing happened."""

from typing import NamedTuple

LONGEST_STANDSTILL_S = 15.0
_LOSSES = ("agent killed", "last host drained")


class Entry(NamedTuple):
    time: float
    kind: str
    step: int
    token: str
    host: str


class Fault(NamedTuple):
    time: float
    kind: str  # what faults.py did
    host: str  # "": of no host


def read(directory):
    """The entries of all workers in order of time. A process that was killed may have left half a line."""
    entries = []
    for path in directory.iterdir():
        host = path.name.partition(".")[0]
        for line in path.read_text().splitlines(keepends=True):
            words = line.split()
            if line.endswith("\n") and len(words) == 4:
                entries.append(Entry(float(words[0]), words[1], int(words[2]), words[3], host))
    return sorted(entries)


def check(entries, faults):
    """The lines about everything that is wrong."""
    returned = [entry for entry in entries if entry.kind == "returned"]
    return [*lost(returned, faults), *_standstills(returned, faults)]


def lost(returned, faults):
    """A step whose token differs from that of an earlier commit of this number, or which does not follow the newest one."""
    history = {}  # the newest entry of each step, by host
    newest = 0
    for entry in returned:
        known = history.get(entry.step, [])
        is_other = any(other.token != entry.token for other in known)
        is_gap = entry.step > newest + 1
        if is_other or is_gap or (not known and entry.step <= newest):
            gone = [other for step in range(entry.step, newest + 1) for other in history.pop(step, [])]
            if not _is_excused(gone, entry.time, faults):
                hosts = ", ".join(sorted({other.host for other in gone}))
                yield f"at {entry.time:.3f} step {entry.step} follows step {newest}: commits that host {hosts} had are gone"
            newest = entry.step
        history.setdefault(entry.step, []).append(entry)
        newest = max(newest, entry.step)
        history.pop(newest - 10000, None)


def _is_excused(gone, now, faults):
    """Whether the agents of all workers that had one of these commits were killed, or the last one was drained, so that nobody has it
    any more.
    """
    return all(
        any(
            fault.kind in _LOSSES and fault.host == entry.host and entry.time - 0.05 <= fault.time <= now
            for fault in faults
        )
        for entry in gone
    )


def _standstills(returned, faults):
    """Times without a commit or another fault that no loss of an agent or of the daemon explains."""
    for before, after in zip(returned, returned[1:]):
        last = max((fault.time for fault in faults if before.time <= fault.time <= after.time), default=before.time)
        length = after.time - last
        explained = any(
            fault.kind in ("agent killed", "daemon killed") and before.time - 1 <= fault.time <= after.time
            for fault in faults
        )
        if length > LONGEST_STANDSTILL_S and not explained:
            yield f"from {last:.3f} nothing for {length:.1f} s, after step {before.step}"
