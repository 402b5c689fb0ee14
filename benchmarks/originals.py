"""Original documents and tables for the benchmarks, read from TNESI_DATA."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.compose import ColumnTransformer, make_column_selector, make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from tnesi.data import DataNotFoundError

Array = npt.NDArray[Any]


def data_folder(name: str) -> Path:
    """Return the folder of that name in TNESI_DATA, or in the current folder."""
    return Path(os.environ.get("TNESI_DATA", ".")).expanduser() / name


def documents(folder: Path) -> tuple[list[Path], Array]:
    """Return the files of a folder of folders, in random order, and the numbers of their folders."""
    if not folder.is_dir():
        raise _missing(folder)
    classes = sorted(path for path in folder.iterdir() if path.is_dir())
    files = [(file, k) for k, path in enumerate(classes) for file in sorted(path.glob("*.txt"))]
    order = np.random.default_rng(0).permutation(len(files))
    return [files[i][0] for i in order], np.array([files[i][1] for i in order])


def sevenths(n: int) -> Array:
    """Return for each of `n` rows in random order which seventh it belongs to."""
    return np.arange(n) * 7 // n


def table(path: Path) -> tuple[pd.DataFrame, Array]:
    """Return the columns of a CSV file without a header, and its last column, the classes, as text."""
    if not path.exists():
        raise _missing(path)
    frame = pd.read_csv(path, header=None, skipinitialspace=True, quotechar="'")
    frame.columns = [f"c{i}" for i in frame.columns]
    return frame.iloc[:, :-1], frame.iloc[:, -1].astype(str).str.rstrip(".").to_numpy()


def numbers_and_texts(frame: pd.DataFrame) -> pd.DataFrame:
    """Return times and booleans as numbers, and other values as text."""
    frame = frame.copy()
    for column in frame.columns:
        values = frame[column]
        if values.dtype.kind == "M":
            frame[column] = values.astype("int64").astype(float)
        elif pd.api.types.is_numeric_dtype(values):
            frame[column] = values.astype(float)
        else:
            frame[column] = values.astype(str)
    return frame


def usual_columns(scaler: Any) -> ColumnTransformer:
    """Return the usual preprocessing of `numbers_and_texts`: scaled numbers, one-hot categories, imputed gaps."""
    return make_column_transformer(
        (make_pipeline(SimpleImputer(strategy="median"), scaler), make_column_selector(dtype_include=np.number)),
        (
            OneHotEncoder(min_frequency=2, handle_unknown="infrequent_if_exist"),
            make_column_selector(dtype_exclude=np.number),
        ),
        sparse_threshold=0,
    )


def _missing(path: Path) -> DataNotFoundError:
    return DataNotFoundError(f"{path} is missing", advice="set TNESI_DATA to the folder of data sets")
