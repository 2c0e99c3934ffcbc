"""The address at which the other ranks of a group reach this process."""

import ipaddress
import os
import socket
from typing import Any, Optional

# No packet is sent there: a UDP socket only looks for the way (RFC 5737, a documentation address).
_ELSEWHERE = "192.0.2.1"


def own_address(store: Any) -> str:
    """Returns a numeric address of this host: the one that the job's launcher uses or, without Horovod's launcher, the one from
    which the group's `store` is reached.
    """
    given = os.environ.get("HOROVOD_HOST_ADDRESS")
    if given:
        return given
    host = _host_of(store)
    for towards in (host, socket.gethostname(), _ELSEWHERE):
        address = _source_address(towards)
        # The host of the store reaches itself by its loopback device, where the others don't.
        if address and (towards == _ELSEWHERE or (towards == host and _is_local(host)) or not _is_loopback(address)):
            return address
    return "127.0.0.1"


def _host_of(store: Any) -> Optional[str]:
    """Returns the host on which the store is; None: it is none of the network."""
    while hasattr(store, "underlying_store"):
        store = store.underlying_store
    if hasattr(store, "host"):
        host: str = store.host
        return host
    return os.environ.get("MASTER_ADDR")


def _is_loopback(address: str) -> bool:
    return ipaddress.ip_address(address).is_loopback


def _is_local(host: Optional[str]) -> bool:
    """Whether all ranks are on this host, since they reach the store by a name of the loopback device."""
    return host == "localhost" or (host is not None and _is_numeric(host) and _is_loopback(host))


def _is_numeric(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _source_address(host: Optional[str]) -> Optional[str]:
    """Returns the address that this host has on the way to `host`; None: there is no way."""
    if not host:
        return None
    try:
        ways = socket.getaddrinfo(host, 1, type=socket.SOCK_DGRAM)
    except OSError:
        return None
    for family, kind, protocol, _, address in ways:
        try:
            with socket.socket(family, kind, protocol) as way:
                way.connect(address)
                own: str = way.getsockname()[0]
                return own
        except OSError:
            continue
    return None
