"""Whether this package shares its folder with another version of Horovod.

The original Horovod has the same name on package indexes. pip replaces one by the other, but `pip install --target`,
an unpacked wheel or the layers of a container can leave both in one folder, where modules of either import those of the other.
"""

import os

# Modules of Horovod 0.x that this version does not have, in folders that both have.
_FOREIGN = ("runner/mpi_run.py", "runner/gloo_run.py")


def _other_version(package: str, version: str) -> str:
    """What shows that another version lies beside this one, as a path in the folder of `package`; empty if nothing does."""
    for name in _FOREIGN:
        if os.path.exists(os.path.join(package, name)):
            return f"horovod/{name}"
    # A plain listing takes a tenth of a millisecond; importlib.metadata would take 20 to be imported.
    for name in os.listdir(os.path.dirname(package)):
        if (
            name.startswith("horovod-")
            and name.endswith((".dist-info", ".egg-info"))
            and not name.startswith(f"horovod-{version}.")
        ):
            return name
    return ""


def refuse_mixed(package: str, version: str) -> None:
    """Raises ImportError if the folder with `package`, this package's own, also has files of another version."""
    found = _other_version(package, version)
    if not found:
        return
    folder = os.path.dirname(package)
    raise ImportError(
        f"{folder} contains horovod {version} and another version ({found}): run 'python -m pip uninstall -y horovod' until it finds "
        f"none, remove {package} and {folder}/horovod-*.dist-info if they are still there, and install this version again"
    )
