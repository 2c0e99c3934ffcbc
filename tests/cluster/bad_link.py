"""A simulated network cable, bad or in an attacker's hands: passes frames between two interfaces, and drops, delays or changes them on command.

    bad_link.py HOST_SIDE NETWORK_SIDE

Started by netns.py in the network namespace of the switch; ends with its standard input. Each line of that is JSON, and is answered with a line:

{"from_host": {"loss": 0.3, "delay": 0.5}, "to_host": {"loss": 1}}: from now on, for each direction: the share of frames that are lost, the seconds
    that the others take, and the shares of those that come twice ("duplicate"), that others overtake ("reorder") and in which a bit is wrong
    ("damage"); none where nothing is said. "forge": a number: one bit of that byte of what TCP carries to or from "peer" from now on is changed,
    once, and the checksum with it, so that only the programs at the ends can notice it. "block": IPv4 addresses: frames from and to
    them are lost if they have more than "block_above" bytes. "pace": the bytes a second of each connection; what would wait for too long is lost.
{"watch": {"name": "text", ...}}: counts the frames with each text from now on.   {"seen": true}: how many there were by now, by name.

In user space, because not every kernel has netem. Both senders have to leave nothing to their hardware (frames whole, checksums in them): see
without_offloads().
"""

import contextlib
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
PERFECT = {
    "loss": 0.0,
    "delay": 0.0,
    "duplicate": 0.0,
    "reorder": 0.0,
    "damage": 0.0,
    "forge": None,
    "peer": None,
    "block": [],
    "block_above": 0,
    "pace": None,
}
QUEUE_SECONDS = 0.05  # at most, of frames of one connection
OVERTAKEN_SECONDS = 0.01  # at most
ETHERNET, IP_ADDRESSES, TCP = 14, slice(26, 34), 6
CONNECTION = slice(26, 38)  # addresses and ports


def without_offloads(interface):
    """Frames sent on this interface are whole: no segments nor checksums are left to do for the hardware."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        for command in OFFLOADS.values():
            value = ctypes.create_string_buffer(struct.pack("II", command, 0), 8)
            request = struct.pack("16sP16x", interface.encode(), ctypes.addressof(value))
            fcntl.ioctl(any_socket, SIOCETHTOOL, request)


def concerns(frame, address):
    """Whether it is an IPv4 frame from or to this address."""
    return frame[12:14] == b"\x08\x00" and socket.inet_aton(address) in (frame[26:30], frame[30:34])


def tcp_payload(frame, peer):
    """Where it begins, in an IPv4 frame from or to the address `peer`, or None."""
    if not concerns(frame, peer) or frame[ETHERNET + 9] != TCP:
        return None
    segment = ETHERNET + (frame[ETHERNET] & 15) * 4
    return segment + (frame[segment + 12] >> 4) * 4


def with_checksum(frame):
    """The same, a TCP segment's checksum made right."""
    frame = bytearray(frame)
    segment = ETHERNET + (frame[ETHERNET] & 15) * 4
    end = ETHERNET + int.from_bytes(frame[ETHERNET + 2 : ETHERNET + 4], "big")
    frame[segment + 16 : segment + 18] = bytes(2)
    summed = bytes(frame[IP_ADDRESSES]) + struct.pack("!HH", TCP, end - segment) + bytes(frame[segment:end])
    total = sum(struct.unpack(f"!{(len(summed) + 1) // 2}H", summed + bytes(len(summed) % 2)))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    frame[segment + 16 : segment + 18] = (total ^ 0xFFFF).to_bytes(2, "big")
    return bytes(frame)


class Watch:
    """Counts the frames with each of some texts."""

    def __init__(self, texts):
        self._texts = {name: text.encode() for name, text in texts.items()}
        self.seen = dict.fromkeys(texts, 0)

    def look(self, frame):
        for name, text in self._texts.items():
            self.seen[name] += text in frame


class Direction:
    """From one interface to another one."""

    def __init__(self, source, sink):
        self.source, self.sink = source, sink
        self.set({})

    def set(self, faults):
        self.faults = {**PERFECT, **faults}
        self._carried = 0  # bytes of TCP, from or to the peer
        self._free_at = {}  # by connection: when what was sent on it has gone through

    def delay(self, frame):
        """Seconds, or None if the frame is lost because too many are before it."""
        overtaken = random.random() < self.faults["reorder"]
        delay = self.faults["delay"] + (random.uniform(0, OVERTAKEN_SECONDS) if overtaken else 0)
        if self.faults["pace"] is None:
            return delay
        now = time.monotonic()
        begin = max(now, self._free_at.get(frame[CONNECTION], now))
        if begin - now > QUEUE_SECONDS:
            return None
        self._free_at[frame[CONNECTION]] = begin + len(frame) / self.faults["pace"]
        return delay + begin - now

    def changed(self, frame):
        if random.random() < self.faults["damage"]:
            return self._with_bit_changed(frame, random.randrange(ETHERNET, len(frame)))
        if self.faults["forge"] is None:
            return frame
        payload = tcp_payload(frame, self.faults["peer"])
        if payload is None:
            return frame
        size = ETHERNET + int.from_bytes(frame[ETHERNET + 2 : ETHERNET + 4], "big") - payload
        place = self.faults["forge"] - self._carried
        self._carried += size
        if not 0 <= place < size:
            return frame
        return with_checksum(self._with_bit_changed(frame, payload + place))

    @staticmethod
    def _with_bit_changed(frame, place):
        return frame[:place] + bytes([frame[place] ^ 1 << random.randrange(8)]) + frame[place + 1 :]

    def _is_blocked(self, frame):
        is_long = len(frame) > self.faults["block_above"]
        return is_long and any(concerns(frame, address) for address in self.faults["block"])

    def take(self):
        """The frames that have come and are not lost."""
        while True:
            try:
                frame, address = self.source.recvfrom(65536)
            except BlockingIOError:
                return
            if address[2] == socket.PACKET_OUTGOING or random.random() < self.faults["loss"]:
                continue
            if self._is_blocked(frame):
                continue
            frame = self.changed(frame)
            yield frame
            if random.random() < self.faults["duplicate"]:
                yield frame

    def send(self, frame):
        with contextlib.suppress(OSError):  # full, or down: lost, as on any cable
            self.sink.send(frame)


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
    watch = Watch({})
    print("ready", flush=True)
    while True:
        timeout = max(0, waiting[0][0] - time.monotonic()) * 1000 if waiting else None
        for descriptor, _ in poller.poll(timeout):
            if descriptor == 0:
                line = sys.stdin.readline()
                if not line:
                    return
                wish = json.loads(line)
                if "watch" in wish:
                    watch = Watch(wish["watch"])
                for name, direction in directions.items():
                    if name in wish:
                        direction.set(wish[name])
                print(json.dumps(watch.seen) if "seen" in wish else "done", flush=True)
                continue
            direction = by_socket[descriptor]
            for frame in direction.take():
                watch.look(frame)
                delay = direction.delay(frame)
                if delay is None:
                    continue
                if delay:
                    heapq.heappush(waiting, (time.monotonic() + delay, next(order), direction, frame))
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
