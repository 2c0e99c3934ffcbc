"""The agent's memory for commits, played by the test's own process."""

import array
import ctypes
import zlib

from horovod import _ffi
from horovod.elastic import commit_store, commits, loop
from horovod.elastic.runs import runs


class Store:
    """The library's data in the agent's memory."""

    def __init__(self):
        self.slots = []
        self.begun = None
        self.newest = None  # number and slot
        self.world = 0  # the id's part beside the number
        self.told = None  # by set_commit: a number
        self.kept = None  # as newest: a copy from another host

    def begin(self, size, keep=0):
        kept = [self.newest[1]] if self.newest else []
        kept += [s for s in self.slots if self.address(s) <= keep < self.address(s) + len(s)]
        free = [s for s in self.slots if len(s) >= size and not any(s is k for k in kept)]
        if not free:
            free = [bytearray(-(-size // 4096) * 4096)]  # like the library's, somewhat more
            self.slots += free
        self.begun, self.end = free[0], 0
        return self.address(self.begun)

    @staticmethod
    def address(slot):
        return ctypes.addressof(ctypes.c_char.from_buffer(slot))

    def append(self, addresses, sizes):
        for address, size in zip(addresses, sizes):
            self.end = -(-self.end // 64) * 64
            self.begun[self.end : self.end + size] = ctypes.string_at(address, size)
            self.end += size

    def checksums(self, begin, offsets, sizes):
        places = [(begin + offset, size) for offset, size in zip(offsets, sizes)]
        return array.array("I", [zlib.crc32(self.begun[at : at + size]) for at, size in places])

    def seal(self, commit):
        self.world = commit - commits.number_of(commit)
        self.newest, self.begun = (commits.number_of(commit), self.begun), None

    def tell(self, commit):
        self.told = commits.number_of(commit)

    def take_kept(self):
        if self.kept is None or (self.newest and self.newest[0] >= self.kept[0]):
            return False
        self.newest, self.kept = self.kept, None
        return True

    def get_newest(self):
        if self.newest is None:
            return None
        number, slot = self.newest
        return _ffi.Stored(self.world + number, self.address(slot), len(slot))


ALL_STORES = []  # as the library's memory, theirs stays readable until the process ends


def install(monkeypatch):
    """A store of the test's own in the place of the agent's."""
    store = Store()
    ALL_STORES.append(store)
    monkeypatch.setattr(_ffi, "store_is_there", lambda: True)
    monkeypatch.setattr(_ffi, "store_begin", store.begin)
    monkeypatch.setattr(_ffi, "store_append", store.append)
    monkeypatch.setattr(_ffi, "store_checksums", store.checksums)
    monkeypatch.setattr(_ffi, "store_seal", store.seal)
    monkeypatch.setattr(_ffi, "store_newest", store.get_newest)
    monkeypatch.setattr(_ffi, "store_take_kept", store.take_kept)
    monkeypatch.setattr(_ffi, "set_commit", store.tell)
    new_process(monkeypatch)
    return store


def new_process(monkeypatch):
    """Simulates the start of the process that replaces this one."""
    monkeypatch.setattr(commits, "_newest", 0)
    runs.forget()
    monkeypatch.setattr(commit_store, "_owner", None)
    monkeypatch.setattr(commit_store, "_warned", False)


def enter(state):
    """Does what the elastic loop does when a process enters it."""
    loop._enter(state)
