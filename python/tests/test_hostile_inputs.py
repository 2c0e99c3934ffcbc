"""What others have written, with whatever in it: files, variables and texts. Whoever reads them gets what was written, or one of the
errors that the reader documents. Needs Hypothesis; runs in one process.
"""

import io
import ipaddress
import json
import os
import tempfile
from pathlib import Path

import numpy
import pytest

hypothesis = pytest.importorskip("hypothesis")
from hypothesis import given  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

from horovod.common.exceptions import HorovodInternalError  # noqa: E402
from horovod.elastic import checkpoint_file, folder_lock  # noqa: E402
from horovod.elastic.checkpoint_file import Damaged, Origin  # noqa: E402
from horovod.numpy.elastic import _TREES as TREES  # noqa: E402
from horovod.runner import _addresses, _launched  # noqa: E402
from horovod.runner._rendezvous_file import RendezvousFile  # noqa: E402
from horovod.runner.common.util import hosts  # noqa: E402

pytestmark = pytest.mark.filterwarnings("error")
hypothesis.settings.register_profile("here", deadline=None, max_examples=200)
hypothesis.settings.load_profile("here")

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
    max_leaves=10,
)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(max_size=20)
    | st.binary(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(max_size=10) | st.integers(), inner, max_size=4)
        | st.tuples(inner, inner)
    ),
    max_leaves=10,
)
ORIGINS = st.builds(Origin, st.integers(0, 2**63), st.integers(0, 2**31), st.text(max_size=10), st.integers(0, 9))


ORIGIN = Origin(5, 3, "job", 2)


def written(values, origin=ORIGIN):
    file = io.BytesIO()
    checkpoint_file.write(TREES, file, origin, values, {"model": {"w": numpy.arange(6.0)}})
    return file.getvalue()


def read(data):
    return checkpoint_file.read_from(TREES, io.BytesIO(data), len(data), "here")


@given(VALUES, ORIGINS)
def test_checkpoint_holds_any_values(value, origin):
    data = written({"value": value}, origin)
    found = read(data)
    assert (found.origin, found.values) == (origin, {"value": value})
    assert type(found.values["value"]) is type(value)
    assert checkpoint_file.read_origin_from(io.BytesIO(data)) == origin


@given(st.binary(max_size=200), st.booleans())
def test_file_that_is_no_checkpoint_is_damaged(data, begins_like_one):
    data = (written({})[:8] if begins_like_one else b"") + data
    for reader in (read, lambda data: checkpoint_file.read_origin_from(io.BytesIO(data))):
        with pytest.raises(Damaged):
            reader(data)


@given(st.data())
def test_changed_checkpoint_is_damaged_or_the_same(data):
    whole = written({"epoch": 3, "odd": {1: (None, [0.5])}})
    position = data.draw(st.integers(0, len(whole) - 1))
    length = data.draw(st.integers(0, 8))
    changed = whole[:position] + data.draw(st.binary(max_size=8)) + whole[position + length :]
    try:
        found = read(changed)
    except Damaged as error:
        assert "\n" not in str(error)
    else:  # the change is in padding, or is none
        assert found.values == {"epoch": 3, "odd": {1: (None, [0.5])}}
        assert (found.trees["model"]["w"] == numpy.arange(6.0)).all()


RENDEZVOUS = st.fixed_dictionaries(
    {},
    optional={
        "addresses": JSON | st.lists(st.text(max_size=20) | st.just("10.0.0.1:80"), max_size=3),
        "credentials": JSON,
        "authority": JSON,
        "size": JSON,
        "other": JSON,
    },
)


@given(
    RENDEZVOUS.map(lambda words: json.dumps(words).encode())
    | JSON.map(lambda words: json.dumps(words).encode())
    | st.binary()
)
def test_rendezvous_file_of_another_is_refused(data):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "launch"
        path.write_bytes(data)
        path.chmod(0o600)
        with pytest.raises(ValueError, match="remove it") as raised:
            RendezvousFile(path)._read(path)
    assert "\n" not in str(raised.value)


@given(st.ip_addresses(), st.integers(1, 65535))
def test_address_is_what_was_joined(address, port):
    host, number = _addresses.split_host_port(_addresses.join_host_port(str(address), port))
    assert (ipaddress.ip_address(host), number) == (address, port)


@given(st.text(max_size=40))
def test_address_of_another_form_is_a_value_error(text):
    try:
        host, port = _addresses.split_host_port(text)
    except ValueError:
        return
    assert isinstance(host, str) and isinstance(port, int)


NAMES = st.from_regex(r"[A-Za-z0-9_.-]{1,20}", fullmatch=True)


@given(st.lists(st.tuples(NAMES, st.integers(0, 10**6)), min_size=1))
def test_hosts_are_those_that_were_written(listed):
    assert hosts.parse_hosts(",".join(f"{name}:{slots}" for name, slots in listed)) == [
        hosts.HostInfo(*host) for host in listed
    ]


@given(st.text())
def test_hosts_of_another_form_are_a_value_error(text):
    try:
        found = hosts.parse_hosts(text)
    except ValueError:
        return
    assert all(host.hostname and ":" not in host.hostname and host.slots >= 0 for host in found)


@given(
    st.binary()
    | st.lists(st.sampled_from(["a slots=2", "# a", "", "b slots=x", "c"])).map(lambda lines: "\n".join(lines).encode())
)
def test_host_file_gives_hosts_or_a_value_error(data):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "hosts")
        Path(path).write_bytes(data)
        try:
            found = hosts.parse_host_files(path)
        except ValueError:
            return
    if found:
        assert all(host.count(":") >= 1 for host in found.split(","))


@given(st.text(alphabet=st.characters(blacklist_categories=["Cs"], blacklist_characters="\0")) | st.integers().map(str))
def test_start_timeout_is_a_time_or_an_error_of_one_line(text):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOROVOD_START_TIMEOUT", text)
        try:
            seconds = _launched._start_timeout()
        except HorovodInternalError as error:
            assert len(str(error).splitlines()) == 1 and len(str(error)) < 500
        else:
            assert 0 < seconds <= 7 * 24 * 3600


@given(st.dictionaries(st.sampled_from(["job", "host", "pid", "writer", "beat", "other"]), JSON))
def test_holder_of_a_folder_is_one_line(holder):
    assert len(folder_lock.holder(holder).splitlines()) <= 1
