"""Dask's scheduler itself; says in a line that it is missing."""

try:
    import distributed
except ImportError as error:
    raise ImportError(
        f"horovod.dask needs distributed (dask[distributed]), which can't be imported here: {error}"
    ) from None

__all__ = ["distributed"]
