"""Model files (.tnesi); :mod:`tnesi.model_file.save_load` documents the format."""

from tnesi.model_file.header import Header
from tnesi.model_file.save_load import ModelFileError, load, read_header, save, split_pipeline

__all__ = ["Header", "ModelFileError", "load", "read_header", "save", "split_pipeline"]
