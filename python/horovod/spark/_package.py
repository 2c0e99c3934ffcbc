"""Spark itself; says in a line that it is missing."""

try:
    import pyspark
except ImportError as error:
    raise ImportError(f"horovod.spark needs pyspark, which can't be imported here: {error}") from None

__all__ = ["pyspark"]
