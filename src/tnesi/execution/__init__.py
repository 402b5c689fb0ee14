"""Where a pass over the rows runs: in this process, over files, on a Dask cluster, or on a GPU."""

from tnesi.execution.settings import Dask, Local, Torch

__all__ = ["Dask", "Local", "Torch"]
