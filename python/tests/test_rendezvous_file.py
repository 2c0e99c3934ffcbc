"""The file by which the processes of a launch find rank 0. Needs horovod-rendezvousd; runs in one process."""

import concurrent.futures
import json
import os
import socket
import stat
import threading

import pytest

from horovod.common._origin import Launch
from horovod.runner import _addresses, _rendezvous_file
from horovod.runner._addresses import own_addresses
from horovod.runner._job import Job, Limits
from horovod.runner._rendezvous_file import Rendezvous, RendezvousFile, file_of
from launcher_there import needs_launcher

pytestmark = needs_launcher


@pytest.fixture
def file(tmp_path):
    return RendezvousFile(tmp_path / "launch")


@pytest.fixture(scope="module")
def daemon():
    """The daemon of a job, which has a separate certificate authority."""
    with Job(Limits(1), report=lambda line: None) as job:
        yield job


@pytest.fixture
def rendezvous(daemon):
    """A function that makes a rendezvous of addresses."""
    return lambda addresses, credentials: Rendezvous(addresses, credentials, daemon.authority, 2)


@pytest.fixture
def stranger():
    """The address of a program that accepts connections, and says nothing."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        yield f"127.0.0.1:{listening.getsockname()[1]}"


@pytest.fixture
def nobody():
    """An address at which nothing listens."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{bound.getsockname()[1]}"


def launch(name="srun-1-2", is_local=True):
    return Launch("srun", 1, 2, name, is_local, "", "SLURM_STEP_NUM_TASKS")


def test_the_others_get_the_address_that_answers(file, tmp_path, daemon, rendezvous, nobody):
    file.write(rendezvous([nobody, daemon.address], "secret"))
    assert RendezvousFile(tmp_path / "launch").wait(0, "") == rendezvous([daemon.address], "secret")


def test_only_its_owner_can_read_it_and_nothing_else_is_left(file, tmp_path, daemon, rendezvous):
    file.write(rendezvous([daemon.address], "secret"))
    (path,) = tmp_path.iterdir()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    file.remove()
    assert list(tmp_path.iterdir()) == []


def test_stale_address_is_waited_to_be_replaced(file, tmp_path, daemon, rendezvous, nobody, monkeypatch):
    """The file is that of an earlier launch of the same name, which was killed."""
    tried = threading.Event()
    original = _rendezvous_file._first_answering

    def first_answering(given):
        try:
            return original(given)
        finally:
            tried.set()

    monkeypatch.setattr(_rendezvous_file, "_first_answering", first_answering)
    file.write(rendezvous([nobody], "old"))
    with concurrent.futures.ThreadPoolExecutor() as pool:
        found = pool.submit(RendezvousFile(tmp_path / "launch").wait, 60, "")
        assert tried.wait(60)
        RendezvousFile(tmp_path / "launch").write(rendezvous([daemon.address], "new"))
        assert found.result(60) == rendezvous([daemon.address], "new")
    with pytest.raises(RuntimeError, match=r"after 0 s nobody answers at \S+ of .*/launch \(the hint\)"):
        file.write(rendezvous([nobody], "old"))
        file.wait(0, "the hint")


def test_a_later_launchs_file_is_not_removed(file, tmp_path, daemon, rendezvous):
    file.write(rendezvous([daemon.address], "old"))
    later = RendezvousFile(tmp_path / "launch")
    later.write(rendezvous([daemon.address], "new"))
    file.remove()
    assert RendezvousFile(tmp_path / "launch").wait(0, "").credentials == "new"


@pytest.mark.parametrize("other", [True, False])
def test_who_listens_at_an_earlier_launchs_port_is_not_taken_for_rank_0(file, daemon, stranger, monkeypatch, other):
    """Be it another program, or the daemon of another job."""
    monkeypatch.setattr(_rendezvous_file, "_CONNECT_SECONDS", 0.2)
    with Job(Limits(1), report=lambda line: None) as elsewhere:
        address = elsewhere.address if other else stranger
        file.write(Rendezvous([address, daemon.address], "secret", daemon.authority, 2))
        assert file.wait(0, "").addresses == [daemon.address]


@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo, lambda path: os.symlink("/dev/zero", path)])
def test_non_file_is_not_read(file, tmp_path, make):
    make(tmp_path / "launch")
    with pytest.raises(ValueError, match="/launch is not a file; remove it"):
        file.wait(0, "")


@pytest.mark.parametrize(
    "change",
    [
        dict(addresses=5),
        dict(addresses=[5]),
        dict(addresses=[]),
        dict(addresses=["127.0.0.1"]),
        dict(addresses=["127.0.0.1:99999"]),
        dict(addresses=["no such host:80"]),
        dict(credentials=None),
        dict(authority="none"),
        dict(authority="é"),
        dict(authority=None),
        dict(size="2"),
        dict(more=1),
    ],
)
def test_what_rank_0_cannot_have_written_is_refused_in_a_line(file, tmp_path, daemon, rendezvous, change):
    file.write(rendezvous([daemon.address], "secret"))
    words = {**json.loads((tmp_path / "launch").read_text()), **change}
    (tmp_path / "launch").write_text(json.dumps(words))
    with pytest.raises(ValueError, match=r"/launch does not hold what rank 0 writes; remove it, and start anew$"):
        file.wait(0, "")


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe\xff", b"[1]", b"5", b"[" * 100_000, b"{}"])
def test_a_damaged_file_is_refused_in_a_line(file, tmp_path, content):
    (tmp_path / "launch").touch(mode=0o600)
    (tmp_path / "launch").write_bytes(content)
    with pytest.raises(ValueError, match=r"/launch does not hold what rank 0 writes; remove it, and start anew$"):
        file.wait(0, "")


def test_unwritable_place_is_an_error(file, tmp_path, rendezvous, nobody):
    (tmp_path / "launch").mkdir()
    with pytest.raises(ValueError, match="/launch is not a file; remove it"):
        file.write(rendezvous([nobody], "secret"))
    (tmp_path / "launch").rmdir()
    assert list(tmp_path.iterdir()) == []
    tmp_path.rmdir()
    with pytest.raises(ValueError, match=r"/launch can't be written .No such file or directory.; set HOROVOD_REND"):
        file.write(rendezvous([nobody], "secret"))


def test_names_that_differ_have_files_that_differ(tmp_path, monkeypatch):
    monkeypatch.setenv("HOROVOD_RENDEZVOUS_DIR", str(tmp_path))
    names = ["mpirun-\udcff", "mpirun-a/b", "mpirun-a_b", "mpirun-" + "x" * 1000, "mpirun-" + "x" * 1001, "../mpirun"]
    paths = {file_of(launch(name))._path for name in names}
    assert len(paths) == len(names)
    assert {path.parent for path in paths} == {tmp_path}
    assert max(len(path.name) for path in paths) < 200


def test_the_directory_is_private(tmp_path, monkeypatch):
    monkeypatch.delenv("HOROVOD_RENDEZVOUS_DIR", raising=False)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "runtime"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(_rendezvous_file.tempfile, "gettempdir", lambda: str(tmp_path))
    own = tmp_path / f"horovod-{os.getuid()}"
    assert file_of(launch())._path.parent == own
    assert stat.S_IMODE(own.stat().st_mode) == 0o700
    assert file_of(launch(is_local=False))._path.parent == tmp_path / ".horovod"
    own.chmod(0o777)
    with pytest.raises(ValueError, match="nobody else can write to; set HOROVOD_RENDEZVOUS_DIR to another"):
        file_of(launch())
    (tmp_path / "runtime").mkdir(mode=0o700)
    assert file_of(launch())._path.parent == tmp_path / "runtime"


@pytest.fixture
def own_places(tmp_path, monkeypatch):
    """The places of a local launch: the directory for temporary files, and the home directory."""
    for name in ("HOROVOD_RENDEZVOUS_DIR", "XDG_RUNTIME_DIR"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "tmp").mkdir()
    (tmp_path / "tmp").chmod(0o1777)
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr(_rendezvous_file.tempfile, "gettempdir", lambda: str(tmp_path / "tmp"))
    return tmp_path / "tmp" / f"horovod-{os.getuid()}", tmp_path / "home" / ".horovod"


def taken(path, kind):
    """Does what another user can: takes the name."""
    if kind == "link":
        path.symlink_to("/")
    else:
        path.mkdir(mode=0o777)
    os.chown(path, 12345, 12345, follow_symlinks=False)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
@pytest.mark.parametrize("kind", ["link", "directory"])
def test_where_another_user_has_taken_the_name_the_home_directory_is_used(
    own_places, daemon, rendezvous, monkeypatch, kind
):
    usual, home = own_places
    taken(usual, kind)
    written = file_of(launch())
    written.write(rendezvous([daemon.address], "secret"))
    (path,) = home.iterdir()
    assert file_of(launch()).wait(0, "").credentials == "secret"
    monkeypatch.setattr(_rendezvous_file, "_machine", lambda: "another, with the same home directory")
    assert file_of(launch())._path.parent == home and file_of(launch())._path != path
    monkeypatch.undo()
    written.remove()
    assert list(home.iterdir()) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
@pytest.mark.parametrize("writes_first", [True, False])
def test_name_that_another_user_takes_or_frees_does_not_separate_processes(
    own_places, daemon, rendezvous, writes_first
):
    usual, home = own_places
    taken(usual, "directory")
    early = file_of(launch())
    usual.rmdir()
    late = file_of(launch())
    writer, reader = (early, late) if writes_first else (late, early)
    writer.write(rendezvous([daemon.address], "secret"))
    assert reader.wait(0, "").credentials == "secret"
    assert len(list(usual.iterdir())) + len(list(home.iterdir())) == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_without_a_home_directory_the_taken_name_is_said(own_places, monkeypatch):
    usual, home = own_places
    taken(usual, "directory")
    home.write_text("no directory")
    with pytest.raises(
        ValueError, match=r"/\.horovod is not a directory of user .*; set HOROVOD_RENDEZVOUS_DIR to another"
    ):
        file_of(launch())


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6])
def test_own_addresses_are_numeric_and_of_one_kind(family, monkeypatch):
    if family == socket.AF_INET6:
        monkeypatch.setattr(_addresses, "_ipv4_addresses", list)
        monkeypatch.setattr(_addresses, "_ipv6_addresses", lambda: ["fd00::1", "fd00::2"])
    addresses = own_addresses()
    assert addresses
    for address in addresses:
        socket.inet_pton(family, address)
