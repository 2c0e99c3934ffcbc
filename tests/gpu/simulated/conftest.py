"""The tests of the simulated GPU need no other."""

import pytest


@pytest.fixture(autouse=True, scope="session")
def gpu():
    """Replaces the fixture that skips tests without a GPU."""
