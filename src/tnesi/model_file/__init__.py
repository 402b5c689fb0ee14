"""Model files (.tnesi): see :mod:`tnesi.model_file.save_load` for the format."""

from tnesi.model_file.header import Header
from tnesi.model_file.save_load import ModelFileError, load, read_header, save, split_pipeline

__all__ = ["Header", "ModelFileError", "load", "read_header", "save", "split_pipeline"]
