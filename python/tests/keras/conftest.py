"""Tests of horovod.keras and horovod.tensorflow.keras, beside those fixtures of all tests."""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import pytest

import kerases


@pytest.fixture(scope="session", autouse=True)
def one_thread_each():
    """The ranks share the cores."""
    if kerases.BACKEND == "tensorflow":
        import tensorflow as tf

        tf.config.threading.set_inter_op_parallelism_threads(1)
        tf.config.threading.set_intra_op_parallelism_threads(1)
    if kerases.BACKEND == "torch":
        import torch

        torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def same_seed(in_step):
    kerases.keras.utils.set_random_seed(1234)


@pytest.fixture
def float16():
    """Models compute in mixed_float16."""
    kerases.set_policy("mixed_float16")
    yield
    kerases.set_policy("float32")


@pytest.fixture
def bfloat16():
    """Models compute in mixed_bfloat16."""
    kerases.set_policy("mixed_bfloat16")
    yield
    kerases.set_policy("float32")


def pytest_configure(config):
    config.addinivalue_line("markers", "only(*kinds): for these of kerases.KINDS or backends")


def pytest_collection_modifyitems(items):
    for item in items:
        for marker in item.iter_markers("only"):
            if not set(marker.args) & {kerases.BACKEND, kerases.NAME}:
                item.add_marker(pytest.mark.skip(reason="only for " + " and ".join(marker.args)))
