"""Checks of arguments, which name what is wrong before C is asked."""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Callable, Optional


@dataclass(frozen=True)
class Host:
    """Slots that are offered. Hosts with the same `machine` share memory, and so local ranks."""

    host: str
    slots: int = 1
    machine: str = ""


def addresses_of(listen: Any) -> list[str]:
    """One address, or several. Raises TypeError."""
    if isinstance(listen, str):
        return [listen]
    if isinstance(listen, Iterable):
        return list(listen)
    raise TypeError(f'listen must be "address:port", or a list of such: Got {listen!r}')


def folder_of(state_dir: Any) -> Optional[str]:
    """A path, as a text. Raises TypeError."""
    if state_dir is None:
        return None
    if not isinstance(state_dir, (str, os.PathLike)):
        raise TypeError(f"state_dir must be a path: Got {state_dir!r}")
    return os.fspath(state_dir)


def hosts_of(hosts: Any) -> list[Host]:
    """Names with numbers of slots, or Hosts. Raises TypeError."""
    if isinstance(hosts, Mapping):
        return [Host(name, slots) for name, slots in hosts.items()]
    given = list(hosts) if isinstance(hosts, Iterable) else [hosts]
    for host in given:
        if not isinstance(host, Host):
            raise TypeError(
                f"hosts must be a dict of numbers of slots by name, or a list of rendezvous.Host: Got {host!r}"
            )
    return given


def check_callbacks(**callbacks: Optional[Callable[..., object]]) -> None:
    """Raises TypeError for what is no function. None: not given."""
    for name, callback in callbacks.items():
        if callback is not None and not callable(callback):
            raise TypeError(f"{name} must be a function: Got {callback!r}")
