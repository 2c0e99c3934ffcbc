"""A mark for tests that need horovodrun."""

import pytest

from horovod.runner.launch import find_program


def _has_launcher():
    try:
        return bool(find_program("horovodrun"))
    except FileNotFoundError:
        return False


needs_launcher = pytest.mark.skipif(not _has_launcher(), reason="there is no horovodrun")
