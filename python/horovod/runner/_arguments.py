"""The settings of a job as an object, for code that starts jobs as Horovod's own tests do."""

from typing import TYPE_CHECKING, Any

# Settings by the names of Horovod's _HorovodArgs, and horovodrun's flags for them.
_FLAGS = {
    "num_proc": "-np",
    "min_num_proc": "--min-np",
    "max_num_proc": "--max-np",
    "slots": "--slots-per-host",
    "reset_limit": "--reset-limit",
    "cooldown_range": "--blacklist-cooldown-range",
    "elastic_timeout": "--elastic-timeout",
    "hosts": "-H",
    "hostfile": "--hostfile",
    "host_discovery_script": "--host-discovery-script",
    "start_timeout": "--start-timeout",
    "ssh_port": "--ssh-port",
    "ssh_identity_file": "--ssh-identity-file",
    "output_filename": "--output-filename",
    "nics": "--network-interfaces",
    "verbose": "--verbose",
    "config_file": "--config-file",
    "disable_cache": "--disable-cache",
    "prefix_output_with_timestamp": "--prefix-output-with-timestamp",
    "fusion_threshold_mb": "--fusion-threshold-mb",
    "cycle_time_ms": "--cycle-time-ms",
    "cache_capacity": "--cache-capacity",
    "autotune": "--autotune",
    "autotune_log_file": "--autotune-log-file",
    "autotune_warmup_samples": "--autotune-warmup-samples",
    "autotune_steps_per_sample": "--autotune-steps-per-sample",
    "autotune_bayes_opt_max_samples": "--autotune-bayes-opt-max-samples",
    "autotune_gaussian_process_noise": "--autotune-gaussian-process-noise",
    "timeline_filename": "--timeline-filename",
    "timeline_mark_cycles": "--timeline-mark-cycles",
    "no_stall_check": "--no-stall-check",
    "stall_check_warning_time_seconds": "--stall-check-warning-time-seconds",
    "stall_check_shutdown_time_seconds": "--stall-check-shutdown-time-seconds",
    "thread_affinity": "--thread-affinity",
    "gloo_timeout_seconds": "--gloo-timeout-seconds",
    "log_level": "--log-level",
    "use_gloo": "--gloo",
    "hierarchical_allreduce": "--hierarchical-allreduce",
    "hierarchical_allgather": "--hierarchical-allgather",
    "torus_allreduce": "--torus-allreduce",
    "log_with_timestamp": "--log-with-timestamp",
    "mpi_threads_disable": "--mpi-threads-disable",
    "num_nccl_streams": "--num-nccl-streams",
    "tcp_flag": "--tcp",
    "binding_args": "--binding-args",
    "use_jsrun": "--jsrun",
}
# Flags without a value; any true value sets them.
_SWITCHES = frozenset(
    _FLAGS[name]
    for name in (
        *("verbose", "disable_cache", "prefix_output_with_timestamp", "autotune", "timeline_mark_cycles"),
        *("no_stall_check", "use_gloo", "hierarchical_allreduce", "hierarchical_allgather", "torus_allreduce"),
        *("log_with_timestamp", "mpi_threads_disable", "tcp_flag", "use_jsrun"),
    )
)
# False is not the default of these.
_OPPOSITES = {
    "--hierarchical-allreduce": "--no-hierarchical-allreduce",
    "--hierarchical-allgather": "--no-hierarchical-allgather",
    "--log-with-timestamp": "--log-without-timestamp",
}
_WITHOUT_FLAG = ("command", "run_func", "executable", "use_mpi", "mpi_args")


class _HorovodArgs:
    """The settings of a job; None: the default. `command` (a list) or `run_func` (a function without arguments) is what the job
    runs. Attributes with other names can't be set (AttributeError).
    """

    __slots__ = tuple(_FLAGS) + _WITHOUT_FLAG

    def __init__(self) -> None:
        for name in self.__slots__:
            setattr(self, name, None)
        self.num_proc = 1

    if TYPE_CHECKING:
        # Settings may be of any type.
        def __getattr__(self, name: str) -> Any: ...
        def __setattr__(self, name: str, value: Any) -> None: ...


def flags_of(settings: _HorovodArgs) -> list[str]:
    """Returns horovodrun's arguments for `settings`.

    Raises ValueError if they contradict each other, or ask for MPI.
    """
    if settings.hosts is not None and settings.hostfile is not None:
        raise ValueError("hosts and hostfile are both given: give one of the two")
    if settings.use_gloo and settings.use_mpi:
        raise ValueError("use_gloo and use_mpi are both True: use_gloo alone is possible here")
    if settings.use_mpi or settings.mpi_args:
        raise ValueError("This Horovod is built without MPI.")
    return _as_arguments({flag: getattr(settings, name, None) for name, flag in _FLAGS.items()})


def _as_arguments(flags: dict[str, Any]) -> list[str]:
    arguments = []
    for flag, value in flags.items():
        if value is None:
            continue
        if flag in _SWITCHES:
            chosen = flag if value else _OPPOSITES.get(flag)
            arguments += [chosen] if chosen else []
        elif flag == _FLAGS["nics"]:
            names = [value] if isinstance(value, str) else sorted(value)
            arguments += [flag, ",".join(names)] if any(names) else []
        elif value is not False:
            arguments += [flag, *_words_of(flag, value)]
    return arguments


def _words_of(flag: str, value: Any) -> list[str]:
    """Returns a setting as the words after its flag: one, or two for a range. Further words would be the command to horovodrun."""
    is_list = isinstance(value, (list, tuple))
    if flag == _FLAGS["cooldown_range"]:
        if not is_list or len(value) != 2:
            raise ValueError(f"cooldown_range: {value!r} is not a pair of seconds, as (5, 60)")
        return [str(each) for each in value]
    if is_list and flag == _FLAGS["hosts"]:
        return [",".join(map(str, value))]
    if is_list:
        name = next(name for name, own in _FLAGS.items() if own == flag)
        raise ValueError(f"{name}: {value!r} is a {type(value).__name__}: give one value")
    return [str(value)]
