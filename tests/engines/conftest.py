"""Fixtures of the tests that run jobs on engines: Spark, Ray, Dask."""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "support")]
