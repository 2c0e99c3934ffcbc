"""Settings of a job, as a configuration file and as environment variables."""

from collections.abc import Collection, MutableMapping
from typing import Any, Callable, NamedTuple, Optional

HOROVOD_FUSION_THRESHOLD = "HOROVOD_FUSION_THRESHOLD"
HOROVOD_CYCLE_TIME = "HOROVOD_CYCLE_TIME"
HOROVOD_CACHE_CAPACITY = "HOROVOD_CACHE_CAPACITY"
HOROVOD_HIERARCHICAL_ALLREDUCE = "HOROVOD_HIERARCHICAL_ALLREDUCE"
HOROVOD_HIERARCHICAL_ALLGATHER = "HOROVOD_HIERARCHICAL_ALLGATHER"
HOROVOD_TORUS_ALLREDUCE = "HOROVOD_TORUS_ALLREDUCE"
HOROVOD_AUTOTUNE = "HOROVOD_AUTOTUNE"
HOROVOD_AUTOTUNE_LOG = "HOROVOD_AUTOTUNE_LOG"
HOROVOD_AUTOTUNE_WARMUP_SAMPLES = "HOROVOD_AUTOTUNE_WARMUP_SAMPLES"
HOROVOD_AUTOTUNE_STEPS_PER_SAMPLE = "HOROVOD_AUTOTUNE_STEPS_PER_SAMPLE"
HOROVOD_AUTOTUNE_BAYES_OPT_MAX_SAMPLES = "HOROVOD_AUTOTUNE_BAYES_OPT_MAX_SAMPLES"
HOROVOD_AUTOTUNE_GAUSSIAN_PROCESS_NOISE = "HOROVOD_AUTOTUNE_GAUSSIAN_PROCESS_NOISE"
HOROVOD_TIMELINE = "HOROVOD_TIMELINE"
HOROVOD_TIMELINE_MARK_CYCLES = "HOROVOD_TIMELINE_MARK_CYCLES"
HOROVOD_STALL_CHECK_DISABLE = "HOROVOD_STALL_CHECK_DISABLE"
HOROVOD_STALL_CHECK_TIME_SECONDS = "HOROVOD_STALL_CHECK_TIME_SECONDS"
HOROVOD_STALL_SHUTDOWN_TIME_SECONDS = "HOROVOD_STALL_SHUTDOWN_TIME_SECONDS"
HOROVOD_MPI_THREADS_DISABLE = "HOROVOD_MPI_THREADS_DISABLE"
HOROVOD_NUM_NCCL_STREAMS = "HOROVOD_NUM_NCCL_STREAMS"
NCCL_IB_DISABLE = "NCCL_IB_DISABLE"
HOROVOD_THREAD_AFFINITY = "HOROVOD_THREAD_AFFINITY"
HOROVOD_GLOO_TIMEOUT_SECONDS = "HOROVOD_GLOO_TIMEOUT_SECONDS"
HOROVOD_LOG_LEVEL = "HOROVOD_LOG_LEVEL"
HOROVOD_LOG_HIDE_TIME = "HOROVOD_LOG_HIDE_TIME"
LOG_LEVELS = ["TRACE", "DEBUG", "INFO", "WARNING", "ERROR", "FATAL"]

# By section of the file: what its keys are prefixed with to be settings, and its keys.
_SECTIONS: dict[str, tuple[str, tuple[str, ...]]] = {
    "params": (
        "",
        (
            "fusion_threshold_mb",
            "cycle_time_ms",
            "cache_capacity",
            "hierarchical_allreduce",
            "hierarchical_allgather",
            "torus_allreduce",
        ),
    ),
    "autotune": (
        "autotune_",
        (
            "log_file",
            "warmup_samples",
            "steps_per_sample",
            "bayes_opt_max_samples",
            "gaussian_process_noise",
        ),
    ),
    "timeline": ("timeline_", ("filename", "mark_cycles")),
    "stall_check": ("stall_check_", ("warning_time_seconds", "shutdown_time_seconds")),
    "library_options": (
        "",
        ("mpi_threads_disable", "num_nccl_streams", "thread_affinity", "gloo_timeout_seconds"),
    ),
    "logging": ("log_", ("level", "with_timestamp")),
}

_NOT_NEGATIVE = (
    "fusion_threshold_mb",
    "cycle_time_ms",
    "cache_capacity",
    "autotune_warmup_samples",
    "autotune_steps_per_sample",
    "autotune_bayes_opt_max_samples",
    "stall_check_warning_time_seconds",
    "stall_check_shutdown_time_seconds",
    "num_nccl_streams",
    "thread_affinity",
    "gloo_timeout_seconds",
)


def _switch(value: Any) -> int:
    return 1 if value else 0


class _Variable(NamedTuple):
    name: str
    setting: str
    convert: Callable[[Any], Any] = str
    only_with: Optional[str] = None  # a setting without which this one means nothing


_VARIABLES = (
    _Variable(HOROVOD_FUSION_THRESHOLD, "fusion_threshold_mb", lambda mb: int(mb * 2**20)),
    _Variable(HOROVOD_CYCLE_TIME, "cycle_time_ms"),
    _Variable(HOROVOD_CACHE_CAPACITY, "cache_capacity"),
    _Variable(HOROVOD_HIERARCHICAL_ALLREDUCE, "hierarchical_allreduce", _switch),
    _Variable(HOROVOD_HIERARCHICAL_ALLGATHER, "hierarchical_allgather", _switch),
    _Variable(HOROVOD_TORUS_ALLREDUCE, "torus_allreduce", _switch),
    _Variable(HOROVOD_AUTOTUNE, "autotune", _switch, "autotune"),
    _Variable(HOROVOD_AUTOTUNE_LOG, "autotune_log_file", str, "autotune"),
    _Variable(HOROVOD_AUTOTUNE_WARMUP_SAMPLES, "autotune_warmup_samples", str, "autotune"),
    _Variable(HOROVOD_AUTOTUNE_STEPS_PER_SAMPLE, "autotune_steps_per_sample", str, "autotune"),
    _Variable(HOROVOD_AUTOTUNE_BAYES_OPT_MAX_SAMPLES, "autotune_bayes_opt_max_samples", str, "autotune"),
    _Variable(HOROVOD_AUTOTUNE_GAUSSIAN_PROCESS_NOISE, "autotune_gaussian_process_noise", str, "autotune"),
    _Variable(HOROVOD_TIMELINE, "timeline_filename", str, "timeline_filename"),
    _Variable(HOROVOD_TIMELINE_MARK_CYCLES, "timeline_mark_cycles", _switch, "timeline_filename"),
    _Variable(HOROVOD_STALL_CHECK_DISABLE, "no_stall_check", _switch),
    _Variable(HOROVOD_STALL_CHECK_TIME_SECONDS, "stall_check_warning_time_seconds"),
    _Variable(HOROVOD_STALL_SHUTDOWN_TIME_SECONDS, "stall_check_shutdown_time_seconds"),
    _Variable(HOROVOD_MPI_THREADS_DISABLE, "mpi_threads_disable", _switch),
    _Variable(HOROVOD_NUM_NCCL_STREAMS, "num_nccl_streams"),
    _Variable(NCCL_IB_DISABLE, "tcp_flag", _switch, "tcp_flag"),
    _Variable(HOROVOD_THREAD_AFFINITY, "thread_affinity"),
    _Variable(HOROVOD_GLOO_TIMEOUT_SECONDS, "gloo_timeout_seconds"),
    _Variable(HOROVOD_LOG_LEVEL, "log_level"),
    _Variable(HOROVOD_LOG_HIDE_TIME, "log_with_timestamp", lambda shown: _switch(not shown)),
)


def set_args_from_config(args: Any, config: dict[str, Any], override_args: Collection[str]) -> None:
    """Sets the settings that a configuration file contains.

    Args:
      args: an object whose attributes are set.
      config: the content of the file.
      override_args: the names of the settings that are not set, because the command line has set them.

    Raises:
      ValueError: the file names an unknown controller.

    Example:
      >>> from types import SimpleNamespace
      >>> from horovod.runner.common.util.config_parser import set_args_from_config
      >>> args = SimpleNamespace(use_gloo=None, use_mpi=None)
      >>> set_args_from_config(args, {"params": {"cycle_time_ms": 5}}, override_args=[])
      >>> args.cycle_time_ms
      5
    """

    def take(setting: str, value: Any) -> None:
        if value is not None and setting not in override_args:
            setattr(args, setting, value)

    controller = config.get("controller")
    if controller and not args.use_gloo and not args.use_mpi:
        if controller.lower() not in ("gloo", "mpi"):
            raise ValueError(f"No such controller supported: {controller}")
        setattr(args, "use_" + controller.lower(), True)
    for name, (prefix, keys) in _SECTIONS.items():
        section = config.get(name) or {}
        for key in keys:
            take(prefix + key, section.get(key))
    if config.get("autotune"):
        take("autotune", config["autotune"].get("enabled", False))
    if config.get("stall_check"):
        take("no_stall_check", not config["stall_check"].get("enabled", True))


def validate_config_args(args: Any) -> None:
    """Checks that all settings are within their ranges.

    Args:
      args: an object with the settings as attributes; None: not set.

    Raises:
      ValueError: a setting is out of its range.
    """
    for name in _NOT_NEGATIVE:
        value = getattr(args, name)
        if value is not None and value < 0:
            raise ValueError(f"{name}={value} must be >= 0")
    noise = args.autotune_gaussian_process_noise
    if noise is not None and not 0 <= noise <= 1:
        raise ValueError(f"autotune_gaussian_process_noise={noise} must be in [0, 1]")


def set_env_from_args(env: MutableMapping[str, str], args: Any) -> MutableMapping[str, str]:
    """Sets the environment variables for the settings.

    Args:
      env: the environment that is changed.
      args: an object with the settings as attributes; None: not set.

    Returns:
      `env`.

    Example:
      >>> from types import SimpleNamespace
      >>> from horovod.runner.common.util.config_parser import set_env_from_args
      >>> set_env_from_args({}, SimpleNamespace(fusion_threshold_mb=2))
      {'HOROVOD_FUSION_THRESHOLD': '2097152'}
    """
    for variable in _VARIABLES:
        value = getattr(args, variable.setting, None)
        if value is None:
            continue
        if variable.only_with is None or getattr(args, variable.only_with, None):
            env[variable.name] = str(variable.convert(value))
    return env
