"""Every kind of file, written from the same array; tests with the fixture `kind` run once for each."""

from __future__ import annotations

import gzip
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

Array = np.ndarray[Any, Any]


def _npz(path: Path, X: Array, y: Array) -> None:
    with path.open("wb") as file:
        np.savez(file, X=X, y=y)


def _npz_packed(path: Path, X: Array, y: Array) -> None:
    with path.open("wb") as file:
        np.savez_compressed(file, X=np.asfortranarray(X), y=y)


def _npy(path: Path, X: Array, y: Array) -> None:
    with path.open("wb") as file:
        np.save(file, X)


def _sparse(path: Path, X: Array, y: Array) -> None:
    from scipy import sparse

    with path.open("wb") as file:
        sparse.save_npz(file, sparse.csr_array(X))


def _table(X: Array, y: Array) -> Any:
    import pandas as pd

    exact = X.astype(np.float64) if X.dtype == np.float32 else X  # pandas rounds float32 when it writes text
    return pd.DataFrame(exact, columns=[f"c{i}" for i in range(X.shape[1])]).assign(label=y)


def _csv(path: Path, X: Array, y: Array) -> None:
    _table(X, y).to_csv(path, index=False, compression=None)


def _csv_packed(path: Path, X: Array, y: Array) -> None:
    path.write_bytes(gzip.compress(_table(X, y).to_csv(index=False, sep=";").encode(), mtime=0))


def _parquet(path: Path, X: Array, y: Array) -> None:
    _table(X, y).to_parquet(path, row_group_size=3)


def _idx(path: Path, X: Array, y: Array) -> None:
    header = b"\0\0\x08\x02" + b"".join(n.to_bytes(4, "big") for n in X.shape)
    path.write_bytes(header + X.astype(np.uint8).tobytes())


def _idx_packed(path: Path, X: Array, y: Array) -> None:
    _idx(path, X, y)
    path.write_bytes(gzip.compress(path.read_bytes(), mtime=0))


def _images(path: Path, X: Array, y: Array) -> None:
    from PIL import Image

    for i, row in enumerate(X):
        folder = path / f"{y[i]:02}"
        folder.mkdir(parents=True, exist_ok=True)
        Image.fromarray(row[None, :]).save(folder / f"{i:04}.png")


def _zarr(version: int, **how: Any) -> Callable[[Path, Array, Array], None]:
    def write(path: Path, X: Array, y: Array) -> None:
        import zarr

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            group = zarr.open_group(path, mode="w", zarr_format=version)
            settings = {"config": {"write_empty_chunks": True}, **how}
            rows = group.create_array("X", shape=X.shape, dtype=X.dtype, **{"chunks": (2, 3), **settings})
            rows[:] = X
            labels = group.create_array("y", shape=y.shape, dtype=y.dtype, chunks=(4,))
            labels[:] = y

    return write


WRITERS: dict[str, Callable[[Path, Array, Array], None]] = {
    "npy": _npy,
    "npz": _npz,
    "npz packed, Fortran order": _npz_packed,
    "sparse npz": _sparse,
    "CSV": _csv,
    "CSV with semicolons, gzip": _csv_packed,
    "Parquet": _parquet,
    "IDX": _idx,
    "IDX, gzip": _idx_packed,
    "images": _images,
    "Zarr 2": _zarr(2),
    "Zarr 3": _zarr(3),
    "Zarr 3, shards": _zarr(3, chunks=(2, 1), shards=(4, 3)),
}


class Kind:
    """A kind of file, and how to write one."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.is_folder = name == "images" or name.startswith("Zarr")
        self.is_bytes = name.startswith(("IDX", "images"))
        self.has_labels = name.startswith(("npz", "CSV", "Parquet", "Zarr", "images"))

    def write(self, path: Path, X: Array, y: Array) -> Path:
        WRITERS[self.name](path, X, y)
        return path

    def files(self, path: Path) -> list[Path]:
        return sorted(p for p in path.rglob("*") if p.is_file()) if self.is_folder else [path]


X = np.arange(24, dtype=np.uint8).reshape(6, 4)
Y = np.array([0, 0, 1, 1, 2, 2])


SLOW = ("Zarr 2", "Zarr 3, shards")
PARAMETERS = [pytest.param(name, marks=pytest.mark.slow if name in SLOW else ()) for name in WRITERS]


@pytest.fixture(params=PARAMETERS, scope="session")
def kind(request: pytest.FixtureRequest) -> Kind:
    return Kind(request.param)


@pytest.fixture(scope="session")
def written(kind: Kind, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of each kind; tests that change it restore it."""
    return kind.write(tmp_path_factory.mktemp("written") / "file", X, Y)
