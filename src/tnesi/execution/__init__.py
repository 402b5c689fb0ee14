"""Where a pass over the rows runs: in this process, over files, or on a Dask cluster."""

from tnesi.execution.settings import Dask, Local

__all__ = ["Dask", "Local"]
