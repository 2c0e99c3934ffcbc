"""horovodrun's command line as settings, for code that starts jobs as Horovod's own tests do.

horovodrun parses its command line itself (launcher/cli/options). This module is for code that inspects or changes settings
before it passes them to ``horovod.runner.launch._run``.
"""

import argparse
from typing import Any

from horovod.runner.common.util import config_parser
from horovod.version import __version__

_INTEGERS = [
    "ssh_port",
    "fusion_threshold_mb",
    "cache_capacity",
    "autotune_warmup_samples",
    "autotune_steps_per_sample",
    "autotune_bayes_opt_max_samples",
    "elastic_timeout",
    "reset_limit",
    "stall_check_warning_time_seconds",
    "stall_check_shutdown_time_seconds",
    "num_nccl_streams",
    "thread_affinity",
    "gloo_timeout_seconds",
    "start_timeout",
]
_FLOATS = ["cycle_time_ms", "autotune_gaussian_process_noise"]
_TEXTS = [
    "output_filename",
    "config_file",
    "autotune_log_file",
    "timeline_filename",
    "mpi_args",
    "binding_args",
    "host_discovery_script",
    "hostfile",
]
# With a flag that takes each back.
_SWITCHES = [
    "hierarchical_allreduce",
    "hierarchical_allgather",
    "torus_allreduce",
    "autotune",
    "timeline_mark_cycles",
    "mpi_threads_disable",
]
# By flags: the settings of other names.
_OTHERS: dict[tuple[str, ...], dict[str, Any]] = {
    ("-np", "--num-proc"): dict(dest="num_proc", type=int),
    ("--min-np", "--min-num-proc"): dict(dest="min_num_proc", type=int),
    ("--max-np", "--max-num-proc"): dict(dest="max_num_proc", type=int),
    ("--slots-per-host",): dict(dest="slots", type=int),
    ("--blacklist-cooldown-range",): dict(dest="cooldown_range", type=int, nargs=2),
    ("-H", "--hosts"): dict(dest="hosts"),
    ("--log-level",): dict(dest="log_level", choices=config_parser.LOG_LEVELS),
    ("-cb", "--check-build"): dict(dest="check_build", action="store_true"),
    ("--disable-cache",): dict(dest="disable_cache", action="store_true"),
    ("--verbose",): dict(dest="verbose", action="store_true"),
    ("--tcp",): dict(dest="tcp_flag", action="store_true"),
    ("-prefix-timestamp", "--prefix-output-with-timestamp"): dict(
        dest="prefix_output_with_timestamp", action="store_true"
    ),
    ("--no-stall-check",): dict(dest="no_stall_check", action="store_true"),
    ("--stall-check",): dict(dest="no_stall_check", action="store_false"),
    ("--log-with-timestamp", "--no-log-hide-timestamp"): dict(dest="log_with_timestamp", action="store_true"),
    ("--log-without-timestamp", "--log-hide-timestamp"): dict(dest="log_with_timestamp", action="store_false"),
    ("--gloo",): dict(dest="use_gloo", action="store_true"),
    ("--mpi",): dict(dest="use_mpi", action="store_true"),
    ("--jsrun",): dict(dest="use_jsrun", action="store_true"),
    ("--network-interfaces", "--network-interface"): dict(
        dest="nics", type=lambda text: text.split(","), action="extend"
    ),
    ("command",): dict(nargs=argparse.REMAINDER),
}
_SHORT = {
    "ssh_port": ["-p"],
    "ssh_identity_file": ["-i"],
    "hostfile": ["-hostfile"],
}
_NOT_SET = {"check_build": False, "disable_cache": False, "verbose": False, "tcp_flag": False}


def _parser() -> argparse.ArgumentParser:
    # Only given settings are set; the file's settings apply to the rest.
    parser = argparse.ArgumentParser("horovodrun", argument_default=argparse.SUPPRESS)
    parser.add_argument("-v", "--version", action="version", version=__version__)
    for kind, names in ((int, _INTEGERS), (float, _FLOATS), (str, _TEXTS + ["ssh_identity_file"])):
        for name in names:
            parser.add_argument(*_SHORT.get(name, []), _flag(name), dest=name, type=kind)
    for name in _SWITCHES:
        parser.add_argument(_flag(name), dest=name, action="store_true")
        parser.add_argument("--no-" + _flag(name)[2:], dest=name, action="store_false")
    for flags, options in _OTHERS.items():
        parser.add_argument(*flags, **options)
    return parser


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def _read(path: str) -> Any:
    try:
        import yaml
    except ImportError:
        raise ImportError("--config-file can only be read with PyYAML, which is not here") from None
    with open(path) as file:
        return yaml.safe_load(file) or {}


def parse(arguments: list[str]) -> argparse.Namespace:
    """Returns the settings that horovodrun's `arguments`, and their --config-file, describe; None for a setting that is not given.
    Unknown flags end the process with status 2 (SystemExit).

    Raises ValueError for a setting that is out of range, or ImportError if the file needs a package that is not installed.
    """
    parser = _parser()
    given = vars(parser.parse_args(arguments))
    names = {action.dest for action in parser._actions} - {"help", "version"}
    settings = argparse.Namespace(**{name: _NOT_SET.get(name) for name in names})
    settings.command, settings.run_func, settings.executable = [], None, None
    for name, value in given.items():
        setattr(settings, name, set(value) if name == "nics" else value)
    if settings.config_file is not None:
        config_parser.set_args_from_config(settings, _read(settings.config_file), set(given))
    config_parser.validate_config_args(settings)
    if settings.num_proc is None and not settings.check_build:
        parser.error("the following arguments are required: -np/--num-proc")
    return settings
