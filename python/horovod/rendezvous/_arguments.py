"""Checks of arguments, which name the invalid one before the C API is called."""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Callable, Optional


@dataclass(frozen=True)
class Host:
    """A host and its slots, to be offered to a job.

    Args:
      host: the host's name.
      slots: its number of slots.
      machine: hosts with the same machine share memory and local ranks; "": the host is a machine by itself.

    Example:
      >>> from horovod import rendezvous
      >>> rendezvous.Host("node7", slots=4)
      Host(host='node7', slots=4, machine='')
    """

    host: str
    slots: int = 1
    machine: str = ""


def addresses_of(listen: object) -> list[str]:
    """Returns the addresses as a list. Raises TypeError."""
    if isinstance(listen, str):
        return [listen]
    if isinstance(listen, Iterable):
        return list(listen)
    raise TypeError(f'listen must be "address:port", or a list of such: Got {listen!r}')


def folder_of(state_dir: object) -> Optional[str]:
    """Returns the path as a string, or None. Raises TypeError."""
    if state_dir is None:
        return None
    if not isinstance(state_dir, (str, os.PathLike)):
        raise TypeError(f"state_dir must be a path: Got {state_dir!r}")
    return os.fspath(state_dir)


def hosts_of(hosts: Any) -> list[Host]:
    """Returns the hosts as a list of :class:`Host`, from a dictionary of slots or from Hosts. Raises TypeError."""
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
    """Raises TypeError for a callback that is neither None nor callable."""
    for name, callback in callbacks.items():
        if callback is not None and not callable(callback):
            raise TypeError(f"{name} must be a function: Got {callback!r}")
