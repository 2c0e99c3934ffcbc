"""Symbol versions of ELF files: which versions of the system's libraries a file asks for, and how it can do with older ones.

A file that was linked on a new system names a version beside each function that it takes from a system library (`dlopen@GLIBC_2.34`), and the
dynamic linker of an older system refuses it, even if the function is there under an older version. `lower()` removes such versions: the
reference then names the function alone, and the dynamic linker takes what it calls so, on new systems and on old ones.

That is right for a function whose newest version has the interface and the meaning of the older ones (UNCHANGED), and for one that
tools/old_systems.cc defines. For any other, `lower()` fails with its name.

The layout of the tables is that of the Linux Standard Base, "Symbol Versioning".
"""

import re
import struct
from pathlib import Path

# The newest versions that a file may ask for: those of the oldest system that the wheel runs on (glibc 2.28, GCC 8).
NEWEST = {"GLIBC": (2, 28), "GLIBCXX": (3, 4, 25), "CXXABI": (1, 3, 11), "GCC": (8,)}

# Functions with a new version and the old interface, by the library that has them on older systems. glibc 2.32 and 2.34 moved those of libpthread and
# libdl into libc; since 2.29 the mathematical ones call no handler of SVID errors; since GCC 12 wait() of a condition variable is not noexcept.
UNCHANGED = {
    "libdl.so.2": ["dladdr", "dlclose", "dlerror", "dlopen", "dlsym", "dlvsym"],
    "libpthread.so.0": [
        *("pthread_attr_setstacksize", "pthread_create", "pthread_join", "pthread_mutex_trylock", "pthread_once"),
        *("pthread_getspecific", "pthread_key_create", "pthread_key_delete", "pthread_setspecific"),
        *("pthread_rwlock_destroy", "pthread_rwlock_init", "pthread_rwlock_rdlock", "pthread_rwlock_unlock"),
        *("pthread_rwlock_wrlock", "pthread_setaffinity_np", "pthread_setname_np", "pthread_sigmask"),
        *("sem_destroy", "sem_init", "sem_post", "sem_wait"),
    ],
    "libm.so.6": ["exp", "exp2", "log", "log2", "pow"],
    "libstdc++.so.6": ["_ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE"],
}

# Functions that older systems have, but which do less there: what tools/old_systems.cc has in their place, under a name of the same length.
RENAMED = {"__libc_start_main": "hvd_start_program"}

SHT_DYNAMIC, SHT_DYNSYM, SHT_VERNEED, SHT_VERSYM = 6, 11, 0x6FFFFFFE, 0x6FFFFFFF
DT_NEEDED, DT_VERSYM, DT_VERNEED, DT_VERNEEDNUM = 1, 0x6FFFFFF0, 0x6FFFFFFE, 0x6FFFFFFF
ANY_VERSION = 1  # VER_NDX_GLOBAL: no version is asked for


class Elf:
    """The tables of a 64-bit little-endian ELF file that say which symbols it needs, in which versions. Changes stay in memory until save()."""

    def __init__(self, path):
        self.path = Path(path)
        self.data = bytearray(self.path.read_bytes())
        if self.data[:6] != b"\x7fELF\x02\x01":
            raise SystemExit(f"{path} is not a 64-bit little-endian ELF file")
        (start,) = struct.unpack_from("<Q", self.data, 0x28)
        size, count = struct.unpack_from("<HH", self.data, 0x3A)
        self.sections = {}
        headers = [struct.unpack_from("<IIQQQQIIQQ", self.data, start + index * size) for index in range(count)]
        for header in headers:
            self.sections[header[1]] = header
        self.strings = headers[self.sections[SHT_DYNSYM][6]][4] if SHT_DYNSYM in self.sections else 0

    def save(self):
        self.path.write_bytes(self.data)

    def string(self, offset):
        start = self.strings + offset
        return self.data[start : self.data.index(0, start)].decode()

    def undefined(self):
        """(name, place of its version index) of each symbol that another file is to define."""
        symbols, versions = self.sections.get(SHT_DYNSYM), self.sections.get(SHT_VERSYM)
        if not symbols or not versions:
            return
        for index in range(symbols[5] // 24):
            name, _, _, section = struct.unpack_from("<IBBH", self.data, symbols[4] + index * 24)
            if index and section == 0:
                yield self.string(name), versions[4] + index * 2

    def defined(self):
        """The name of each symbol that this file defines for others."""
        symbols = self.sections[SHT_DYNSYM]
        for index in range(symbols[5] // 24):
            name, _, _, section = struct.unpack_from("<IBBH", self.data, symbols[4] + index * 24)
            if section:
                yield self.string(name)

    def needs(self):
        """(place of the library's record, [(place, version index, version)]) of each library of which versions are asked for."""
        section = self.sections.get(SHT_VERNEED)
        place = section[4] if section else None
        for _ in range(section[7] if section else 0):
            _, count, _, entry, following = struct.unpack_from("<HHIII", self.data, place)
            versions, at = [], place + entry
            for _ in range(count):
                _, _, index, name, step = struct.unpack_from("<IHHII", self.data, at)
                versions.append((at, index, self.string(name)))
                at += step
            yield place, versions
            place += following

    def version_of(self):
        """Version by version index."""
        return {index: version for _, versions in self.needs() for _, index, version in versions}

    def drop_versions(self, unwanted):
        """Takes the versions with these indices out of the list of those that must be there for the file to be loaded."""
        left = []
        for place, versions in self.needs():
            kept = [at for at, index, _ in versions if index not in unwanted]
            if not kept:
                continue
            left.append(place)
            struct.pack_into("<H", self.data, place + 2, len(kept))
            struct.pack_into("<I", self.data, place + 8, kept[0] - place)
            for at, following in zip(kept, [*kept[1:], None]):
                struct.pack_into("<I", self.data, at + 12, following - at if following else 0)
        for place, following in zip(left, [*left[1:], None]):
            struct.pack_into("<I", self.data, place + 12, following - place if following else 0)
        self._set_needs(left)

    def _set_needs(self, places):
        """Writes where the list of libraries begins, and how long it is: for the dynamic linker and, in the section's header, for tools."""
        header = self.sections[SHT_VERNEED]
        moved = places[0] - header[4] if places else 0
        entries = []
        for tag, value in self._dynamic():
            if not places and tag in (DT_VERSYM, DT_VERNEED, DT_VERNEEDNUM):
                continue  # A list must not be empty. Without one, no symbol has a version.
            entries.append((tag, {DT_VERNEED: value + moved, DT_VERNEEDNUM: len(places)}.get(tag, value)))
        section = self.sections[SHT_DYNAMIC]
        packed = b"".join(struct.pack("<QQ", *entry) for entry in entries)
        self.data[section[4] : section[4] + section[5]] = packed.ljust(section[5], b"\0")
        (start,) = struct.unpack_from("<Q", self.data, 0x28)
        size, count = struct.unpack_from("<HH", self.data, 0x3A)
        for at in range(start, start + size * count, size):
            if struct.unpack_from("<I", self.data, at + 4)[0] == SHT_VERNEED:
                length = header[5] - moved if places else 0
                struct.pack_into("<QQQ", self.data, at + 16, header[3] + moved, header[4] + moved, length)
                struct.pack_into("<I", self.data, at + 44, len(places))

    def rename(self, name, new):
        """Gives an undefined symbol another name of the same length. Symbols are hashed by name only where they are defined."""
        symbols = self.sections[SHT_DYNSYM]
        offsets = [struct.unpack_from("<I", self.data, symbols[4] + index * 24)[0] for index in range(symbols[5] // 24)]
        (start,) = {offset for offset in offsets if self.string(offset) == name}
        # The linker stores a name that is the end of another one only once.
        if len(name) != len(new) or any(start < offset <= start + len(name) for offset in offsets):
            raise SystemExit(
                f"{self.path}: {name} can't be renamed to {new}: the lengths differ, or another symbol shares its name's bytes"
            )
        self.data[self.strings + start : self.strings + start + len(name)] = new.encode()

    def need_last(self, library):
        """Moves a library to the end of the list of libraries that this file needs, which is the order in which they are searched."""
        section = self.sections[SHT_DYNAMIC]
        places = [section[4] + index * 16 for index, (tag, _) in enumerate(self._dynamic()) if tag == DT_NEEDED]
        values = [struct.unpack_from("<Q", self.data, place + 8)[0] for place in places]
        values.sort(key=lambda value: self.string(value) == library)  # stable
        for place, value in zip(places, values):
            struct.pack_into("<Q", self.data, place + 8, value)

    def _dynamic(self):
        """The dynamic section's entries: tag and value. There may be several empty ones at its end."""
        section = self.sections[SHT_DYNAMIC]
        for at in range(section[4], section[4] + section[5], 16):
            yield struct.unpack_from("<QQ", self.data, at)


def is_too_new(version):
    family, _, number = version.partition("_")
    if family not in NEWEST or not re.fullmatch(r"\d+(\.\d+)*", number):
        return False
    return tuple(int(part) for part in number.split(".")) > NEWEST[family]


def too_new(path):
    """Version by name of each symbol for which the file asks a version that older systems lack."""
    elf = Elf(path)
    versions = elf.version_of()
    index = {name: struct.unpack_from("<H", elf.data, place)[0] & 0x7FFF for name, place in elf.undefined()}
    return {name: versions[index[name]] for name in index if is_too_new(versions.get(index[name], ""))}


def defined(path):
    return frozenset(Elf(path).defined())


def old_home(name):
    """The library that defines a function of UNCHANGED on older systems; None for other functions."""
    return next((library for library, names in UNCHANGED.items() if name in names), None)


def need_last(path, library):
    elf = Elf(path)
    elf.need_last(library)
    elf.save()


def lower(path, available):
    """Makes the file ask for no version above NEWEST; `available` are the functions of tools/old_systems.cc."""
    wanted = too_new(path)
    known = {*available, *RENAMED, *(name for names in UNCHANGED.values() for name in names)}
    unknown = sorted(f"{name}@{version}" for name, version in wanted.items() if name not in known)
    if unknown:
        raise SystemExit(
            f"{path} needs {', '.join(unknown)}, which older systems lack: define it in tools/old_systems.cc, or list it in UNCHANGED of "
            "tools/symbol_versions.py if an older version of it has the same interface"
        )
    elf = Elf(path)
    for name, place in elf.undefined():
        if name in wanted:
            struct.pack_into("<H", elf.data, place, ANY_VERSION)
    for name in RENAMED.keys() & wanted.keys():
        elf.rename(name, RENAMED[name])
    unwanted = {index for index, version in elf.version_of().items() if is_too_new(version)}
    if unwanted:
        elf.drop_versions(unwanted)
        elf.save()
