"""A network cable that can be bad: passes frames between two interfaces, loses some of them and delays the others.

    bad_link.py HOST_SIDE NETWORK_SIDE

Started by netns.py in the network namespace of the switch; ends with its standard input. Each line of that is JSON,
{"from_host": {"loss": 0.3, "delay": 0.5}, "to_host": {"loss": 1}}: the share of frames that are lost and the seconds that the others take, none
where nothing is said. Answers each with a line once it holds. In user space, because not every kernel has netem. Both senders have to leave
nothing to their hardware (frames whole, checksums in them): see without_offloads().
"""

import ctypes
import fcntl
import heapq
import itertools
import json
import random
import select
import socket
import struct
import sys
import time

SIOCETHTOOL = 0x8946
OFFLOADS = {"tx checksums": 0x17, "scatter": 0x19, "TSO": 0x1F, "GSO": 0x24}
PERFECT = {"loss": 0.0, "delay": 0.0}


def without_offloads(interface):
    """Frames sent on this interface are whole: no segments nor checksums are left to do for the hardware."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        for command in OFFLOADS.values():
            value = ctypes.create_string_buffer(struct.pack("II", command, 0), 8)
            request = struct.pack("16sP16x", interface.encode(), ctypes.addressof(value))
            fcntl.ioctl(any_socket, SIOCETHTOOL, request)


class Direction:
    """From one interface to another one."""

    def __init__(self, source, sink):
        self.source, self.sink = source, sink
        self.faults = PERFECT

    def take(self):
        """The frames that have come and are not lost."""
        while True:
            try:
                frame, address = self.source.recvfrom(65536)
            except BlockingIOError:
                return
            if address[2] != socket.PACKET_OUTGOING and random.random() >= self.faults["loss"]:
                yield frame

    def send(self, frame):
        try:
            self.sink.send(frame)
        except OSError:
            pass  # full, or down: lost, as on any cable


def packet_socket(interface):
    opened = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0003))
    opened.bind((interface, 0))
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
    opened.setblocking(False)
    return opened


def main(host_side, network_side):
    host, network = packet_socket(host_side), packet_socket(network_side)
    directions = {"from_host": Direction(host, network), "to_host": Direction(network, host)}
    by_socket = {host.fileno(): directions["from_host"], network.fileno(): directions["to_host"]}
    poller = select.poll()
    for descriptor in (0, *by_socket):
        poller.register(descriptor, select.POLLIN)
    waiting, order = [], itertools.count()  # (when due, order, direction, frame)
    print("ready", flush=True)
    while True:
        timeout = max(0, waiting[0][0] - time.monotonic()) * 1000 if waiting else None
        for descriptor, _ in poller.poll(timeout):
            if descriptor == 0:
                line = sys.stdin.readline()
                if not line:
                    return
                for name, faults in json.loads(line).items():
                    directions[name].faults = {**PERFECT, **faults}
                print("done", flush=True)
                continue
            direction = by_socket[descriptor]
            for frame in direction.take():
                if direction.faults["delay"]:
                    heapq.heappush(waiting, (time.monotonic() + direction.faults["delay"], next(order), direction, frame))
                else:
                    direction.send(frame)
        while waiting and waiting[0][0] <= time.monotonic():
            _, _, direction, frame = heapq.heappop(waiting)
            direction.send(frame)


if __name__ == "__main__":
    if sys.argv[1] == "--without-offloads":
        without_offloads(sys.argv[2])
    else:
        main(*sys.argv[1:])
