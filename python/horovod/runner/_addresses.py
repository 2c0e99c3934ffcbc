"""Addresses of this machine, and addresses as text."""

import contextlib
import fcntl
import socket
import struct


def join_host_port(host: str, port: int) -> str:
    """Returns ``HOST:PORT``, with brackets around an IPv6 address."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def split_host_port(address: str) -> tuple[str, int]:
    """Returns host and port of ``HOST:PORT``, without the brackets of an IPv6 address."""
    host, _, port = address.rpartition(":")
    return host.strip("[]"), int(port)


def own_address(name: str) -> str:
    """Returns the numeric address of `name` if it is one of this machine's, else ``0.0.0.0``, which stands for all of them."""
    try:
        address = str(socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)[0][4][0])
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.bind((address, 0))
    except OSError:
        return "0.0.0.0"
    return address


def own_address_towards(host: str) -> str:
    """Returns the address of this machine under which `host` sees it."""
    with contextlib.suppress(OSError):
        family, _, _, _, address = socket.getaddrinfo(host, 9, type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect(address)  # sends nothing
            return str(probe.getsockname()[0])
    return "127.0.0.1"


def loopback_address() -> str:
    """Returns the loopback address of IPv4, or of IPv6 if there is no IPv4."""
    with contextlib.suppress(OSError), socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return "127.0.0.1"
    return "::1"


def own_addresses() -> list[str]:
    """Returns the numeric addresses of this machine's interfaces that other machines may reach, all of one kind: IPv4, or IPv6 if
    there is no IPv4. The address of the machine's name comes first.
    """
    found = _ipv4_addresses() or _ipv6_addresses() or ["127.0.0.1"]
    named = []
    with contextlib.suppress(OSError):
        named = [str(info[4][0]) for info in socket.getaddrinfo(socket.gethostname(), None)]
    return sorted(found, key=lambda address: address not in named)


def _ipv4_addresses() -> list[str]:
    """Returns the IPv4 addresses except the loopback's."""
    get_address = 0x8915  # SIOCGIFADDR
    found = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        for _, name in socket.if_nameindex():
            with contextlib.suppress(OSError):
                answer = fcntl.ioctl(probe.fileno(), get_address, struct.pack("256s", name.encode()[:15]))
                found.append(socket.inet_ntoa(answer[20:24]))
    return [address for address in found if not address.startswith("127.")]


def _ipv6_addresses() -> list[str]:
    """Returns the IPv6 addresses of global scope."""
    try:
        with open("/proc/net/if_inet6") as file:
            lines = [line.split() for line in file]
    except OSError:
        return []
    return [socket.inet_ntop(socket.AF_INET6, bytes.fromhex(line[0])) for line in lines if line[3] == "00"]
