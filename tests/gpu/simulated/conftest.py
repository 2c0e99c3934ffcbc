"""The tests of the simulated GPU need no other."""

import pytest


@pytest.fixture(autouse=True, scope="session")
def gpu():
    """Instead of the one that skips tests where there is no GPU."""
