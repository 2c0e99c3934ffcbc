"""torch's own tests of backends, which its wheel ships, run on the backend hvd: a unittest module.

    WORLD_SIZE=2 python -m pytest tests/torch_distributed/torchs_cases.py

Tests that torch has for Gloo alone run as well. Each rank is a process of its own, without Horovod's launcher.
"""

import os
import tempfile
import unittest

import torch


class Backend(str):
    """The name of our backend, which torch's tests also take for those of Gloo and MPI: they skip what a backend is not known to
    have, and ours has what any of the two has.
    """

    def __eq__(self, other: object) -> bool:
        return str.__eq__(self, other) or other in ("gloo", "mpi")  # type: ignore[return-value]

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash("gloo")


os.environ["BACKEND"] = "hvd"
_folder = tempfile.TemporaryDirectory(prefix="torchs-cases-")
os.environ["TEMP_DIR"] = _folder.name
for name in ("barrier", "init_dir", "test_dir"):
    os.mkdir(os.path.join(_folder.name, name))
torch.set_num_threads(1)

from torch.testing._internal import common_distributed  # noqa: E402

import horovod.torch.distributed  # noqa: E402, F401

for feature in ("ddp", "subgroup", "plugin"):
    common_distributed.DistTestCases.backend_feature[feature].add("hvd")

from torch.testing._internal.distributed import distributed_test  # noqa: E402

distributed_test.BACKEND = Backend("hvd")
# The decorators have read the name already: the module is loaded again with the one that is also Gloo's.
_source = distributed_test.__file__
with open(_source) as _file:
    _text = _file.read().replace('BACKEND = os.environ["BACKEND"]', "BACKEND = _backend_of_the_run")
distributed_test.__dict__["_backend_of_the_run"] = Backend("hvd")
exec(compile(_text, _source, "exec"), distributed_test.__dict__)


class TestBackend(distributed_test.TestDistBackend, distributed_test.DistributedTest._DistTestBase):  # type: ignore[misc, name-defined]
    """Each test in processes of its own."""

    def setUp(self) -> None:
        super().setUp()
        # torch spawns them, so that each imports anew, which takes ten times as long.
        self._start_processes(torch.multiprocessing.get_context("fork").Process)


_OWN_WORDS = "the errors of ranks that wait have other words; backend_test.py has the same mistakes"
# The tests of torch that fail here, and why.
EXPLAINED = {
    **({"test_monitored_barrier_gloo": _OWN_WORDS} if int(os.environ["WORLD_SIZE"]) > 2 else {}),
    "test_monitored_barrier_gloo_rank_0_timeout": _OWN_WORDS,
    "test_monitored_barrier_gloo_subgroup": _OWN_WORDS,
}
for name in EXPLAINED:
    setattr(TestBackend, name, unittest.expectedFailure(getattr(TestBackend, name)))
