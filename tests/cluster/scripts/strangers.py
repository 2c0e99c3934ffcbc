"""Strangers: opens COUNT idle connections to every TCP port that begins to listen on this host, at each of its addresses. A connection that is closed
is opened again.

    python strangers.py COUNT [PORTS]

Says "watching" when it looks, and "COUNT at PORT" when all have come to a port. With PORTS it looks for so many that stay open only, and nobody comes
again: from then on nothing is done here.
"""

import resource
import select
import signal
import socket
import struct
import sys
import time

# From <linux/sock_diag.h>, <linux/inet_diag.h> and <linux/netlink.h>.
SOCK_DIAG_BY_FAMILY, NLM_F_REQUEST_DUMP, NETLINK_SOCK_DIAG, TCP_LISTEN = 20, 0x301, 4, 10


def listening_sockets(family):
    """Addresses, as bytes, and ports. Asks the kernel for these alone: /proc/net/tcp takes it milliseconds, since it looks at all connections."""
    request = struct.pack("<BBxxI48x", family, socket.IPPROTO_TCP, 1 << TCP_LISTEN)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_SOCK_DIAG) as kernel:
        kernel.send(struct.pack("<IHHII", 16 + len(request), SOCK_DIAG_BY_FAMILY, NLM_F_REQUEST_DUMP, 0, 0) + request)
        while True:
            answer = kernel.recv(1 << 16)
            while answer:
                size, kind = struct.unpack_from("<IH", answer)
                if kind != SOCK_DIAG_BY_FAMILY:
                    return
                (port,) = struct.unpack_from(">H", answer, 20)
                yield answer[24 : 24 + (4 if family == socket.AF_INET else 16)], port
                answer = answer[(size + 3) & ~3 :]


def own_addresses():
    """Of IPv4, loopback and the host's name's."""
    named = socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET, socket.SOCK_STREAM)
    return {"127.0.0.1", *(entry[4][0] for entry in named)}


def listening():
    """Where something listens now: pairs of address and port."""
    for family in (socket.AF_INET, socket.AF_INET6):
        for address, port in listening_sockets(family):
            if address == socket.inet_pton(socket.AF_INET6, "::1"):
                continue
            # All interfaces, of either protocol; else the last 4 bytes of what is IPv4 or mapped to it.
            for where in [socket.inet_ntoa(address[-4:])] if any(address) else own_addresses():
                yield where, port


class Crowd:
    def __init__(self, comes_again):
        self._comes_again = comes_again
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
            if self._comes_again:
                self.send_one(where)


def main():
    count = int(sys.argv[1])
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    wanted = int(sys.argv[2]) if len(sys.argv) > 2 else None
    crowd, known = Crowd(comes_again=wanted is None), set(listening())
    found = 0
    print("watching", flush=True)
    while wanted is None or found < wanted:
        for where in listening():
            if where not in known:
                known.add(where)
                came = sum(crowd.send_one(where) for _ in range(count))
                found += came == count  # else the port was closed meanwhile
                print(f"{came} at {where[1]}", flush=True)
        started = time.monotonic()
        while time.monotonic() - started < 0.005:
            crowd.renew(0.005)
    signal.pause()


if __name__ == "__main__":
    main()
