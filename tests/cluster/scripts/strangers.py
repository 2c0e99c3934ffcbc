"""Strangers: COUNT connections to every TCP port that begins to listen on this host, which say nothing. Who is hung up on comes again.

    python strangers.py COUNT

Says "watching" when it looks, and "COUNT at PORT" when all have come to a port.
"""

import resource
import select
import socket
import struct
import sys
import time
from pathlib import Path


def listening():
    """Where something listens now: pairs of address and port."""
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        local, state = line.split()[1], line.split()[3]
        if state == "0A":
            address, port = local.split(":")
            address = socket.inet_ntoa(struct.pack("<I", int(address, 16)))
            yield "127.0.0.1" if address == "0.0.0.0" else address, int(port, 16)


class Crowd:
    def __init__(self):
        self._poll = select.epoll()
        self._members = {}  # by descriptor: socket, and where to

    def send_one(self, where):
        """Whether it was let in by the kernel."""
        stranger = socket.socket()
        try:
            stranger.connect(where)
        except OSError:
            stranger.close()
            return False
        self._members[stranger.fileno()] = stranger, where
        self._poll.register(stranger, select.EPOLLIN)
        return True

    def renew(self, patience):
        for descriptor, _ in self._poll.poll(patience):
            stranger, where = self._members.pop(descriptor)
            self._poll.unregister(descriptor)
            stranger.close()
            self.send_one(where)


def main():
    count = int(sys.argv[1])
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    crowd, known = Crowd(), set(listening())
    print("watching", flush=True)
    while True:
        for where in listening():
            if where not in known:
                known.add(where)
                came = sum(crowd.send_one(where) for _ in range(count))
                print(f"{came} at {where[1]}", flush=True)
        started = time.monotonic()
        while time.monotonic() - started < 0.005:
            crowd.renew(0.005)


if __name__ == "__main__":
    main()
