"""Jobs of ``horovod.run``: their launcher, and the workers' results."""

import contextlib
import socket
import subprocess
import sys
from collections.abc import Sequence
from typing import Any, Optional

from horovod.runner import _handover
from horovod.runner._arguments import _HorovodArgs, flags_of
from horovod.runner._launcher import Launcher
from horovod.runner._programs import find_program
from horovod.runner._python import module_command

_REFUSED = 2  # horovodrun's exit status for a mistake in its arguments; a worker's may be the same


def run_settings(settings: _HorovodArgs) -> Optional[list[Any]]:
    """Runs the job that `settings` describe; returns the results of a function, or None for a command.

    Raises as :func:`horovod.run`.
    """
    if (settings.run_func is None) == (not settings.command):
        raise ValueError("One of run_func and command must be given.")
    if settings.run_func is not None:
        return run_function(settings)
    status, reason = _launch(flags_of(settings) + list(settings.command))
    if status != 0:
        raise RuntimeError(explain(status, [], reason))
    return None


def run_function(settings: _HorovodArgs) -> list[Any]:
    """Runs the settings' function and returns its results, in rank order. Raises as :func:`horovod.run`."""
    if settings.num_proc is None:
        settings.num_proc = 1
    python = settings.executable or sys.executable
    task = module_command("horovod.runner.run_task", python)
    handover = _handover.Handover(settings.run_func)
    status, reason = _launch_with(handover, flags_of(settings) + task, python)
    if status != 0:
        raise RuntimeError(explain(status, handover.failures(), reason))
    results = handover.results()
    count = _number_in(settings.min_num_proc) or max(_number_in(settings.num_proc), len(results))
    missing = [rank for rank in range(count) if rank not in results]
    if missing:
        raise RuntimeError(f"horovod.run: no result came back from ranks {missing}")
    return [results[rank] for rank in range(count)]


def _number_in(setting: object) -> int:
    """Returns the number that horovodrun has taken a setting for, e.g. 2 for "2"; 0 for one that is no number: None or "auto"."""
    text = str(setting)
    return int(text) if text.isdecimal() else 0


def _launch(arguments: Sequence[str]) -> tuple[int, str]:
    """Runs horovodrun and returns its exit status, and its error if that is known. An exception, such as KeyboardInterrupt, ends horovodrun first."""
    launcher = Launcher(arguments)
    try:
        return launcher.wait(), launcher.error()
    finally:
        launcher.stop()


def _launch_with(handover: _handover.Handover, arguments: Sequence[str], python: str) -> tuple[int, str]:
    """Runs horovodrun for workers that get their function from `handover`; returns as :func:`_launch`. Raises ValueError if it
    refuses the arguments.
    """
    taken = False
    with contextlib.ExitStack() as stack:
        own, launchers = map(stack.enter_context, socket.socketpair())
        flag = ["--handover", str(launchers.fileno())]
        launcher = Launcher([*flag, *arguments], pass_fds=[launchers.fileno()], python=python)
        stack.callback(launcher.stop)
        launchers.close()
        with contextlib.suppress(ConnectionError):  # horovodrun itself reports why it has ended
            words, listeners = _handover.receive_credentials(own)
            server = handover.server(_handover.credentials_of(words), listeners)
            server.start()
            stack.callback(server.stop)
            taken = True
        status = launcher.wait()
        if status == _REFUSED and not taken:
            raise ValueError(f"horovodrun refused the arguments of horovod.run: {_why_refused(arguments)}")
        return status, launcher.error()


def _why_refused(arguments: Sequence[str]) -> str:
    """Returns why horovodrun refuses the arguments. Its own line may have gone to a stream that can't be read here."""
    command = [find_program("horovodrun"), "--dry-run", *arguments]  # it starts nothing
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode != _REFUSED or not done.stderr:
        return "the line that it has written to stderr says why"
    return done.stderr.splitlines()[-1].partition("error: ")[2]


def explain(status: int, failures: list[_handover.Failure], verdict: str = "") -> str:
    """Returns the error text for a failed job, with the first failure's traceback and the daemon's verdict."""
    text = "The Horovod job failed: " + (verdict or f"horovodrun ended with status {status}.")
    if not failures and not verdict:
        text += " Its last lines on stderr say why."
    if failures:
        text += f"\nRank {failures[0].rank} raised:\n{failures[0].text}"
    return text
