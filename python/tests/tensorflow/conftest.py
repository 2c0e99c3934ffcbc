"""Tests of horovod.tensorflow, beside those fixtures of all tests."""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import pytest
import tensorflow as tf


@pytest.fixture(scope="session", autouse=True)
def one_thread_each():
    """The ranks share the cores."""
    tf.config.threading.set_inter_op_parallelism_threads(1)
    tf.config.threading.set_intra_op_parallelism_threads(1)


@pytest.fixture(autouse=True)
def same_seed(in_step):
    tf.random.set_seed(1234)


@pytest.fixture
def dynamic(monkeypatch):
    """Process sets can be added and removed."""
    monkeypatch.setenv("HOROVOD_DYNAMIC_PROCESS_SETS", "1")
