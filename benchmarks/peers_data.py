"""The features of the peers benchmark (see `peers_features.py`), kept on disk.

    from peers_data import NAMES, load, validation
    X, y, X_test, y_test = load("mnist", "encoded")

The folder is ``TNESI_BENCHMARKS`` (by default ``tnesi/benchmarks`` in the user's cache). The names of the files contain
a digest of the code that computes them, so they are computed again when an encoder changes.

`python benchmarks/peers_data.py [--data NAME ...]` computes all features and prints their shapes.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import os
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from peers_features import FEATURE_KINDS, KINDS, NAMES, FeatureKind, Split, compute, feature_kinds
from scipy import sparse

import tnesi.encoders
from tnesi.errors import TnesiError
from tnesi.system.files import cache_folder, replacing

__all__ = [
    "FEATURE_KINDS",
    "KINDS",
    "NAMES",
    "FeatureKind",
    "Split",
    "digest_of",
    "feature_kinds",
    "features_folder",
    "load",
    "validation",
]

Array = npt.NDArray[Any]


def load(name: str, features: FeatureKind, folder: Path | None = None) -> Split:
    """Return a data set as features, from the cache in `folder` or computed and stored there.

    Raises
    ------
    tnesi.data.DataNotFoundError
        If the data, or what is needed to read them, are not on this machine.
    """
    kept = (folder or features_folder()) / f"{name}-{features}-{_digest()}.npz"
    if not kept.exists():
        arrays = _as_arrays(compute(name, features))
        kept.parent.mkdir(parents=True, exist_ok=True)
        with replacing(kept) as temporary, temporary.open("wb") as file:
            np.savez(file, **arrays)  # type: ignore[arg-type]
    with np.load(kept, allow_pickle=False) as stored:
        return _from_arrays(dict(stored))


def validation(split: Split, seed: int = 0) -> Split:
    """Return a seventh of the training rows as the test part; data without one stay as they are."""
    if split.X_test is None:
        return split
    n = len(split.y)
    test = np.zeros(n, bool)
    test[np.random.default_rng(seed).permutation(n)[: n // 7]] = True
    return Split(split.X[~test], split.y[~test], split.X[test], split.y[test])


def digest_of(split: Split) -> str:
    """Return a digest of all rows and classes."""
    found = hashlib.blake2b(digest_size=6)
    for name, values in _as_arrays(split).items():
        found.update(f"{name}{values.dtype}{values.shape}".encode())
        found.update(np.ascontiguousarray(values).data)
    return found.hexdigest()


def features_folder() -> Path:
    """Return the folder in which features are kept."""
    given = os.environ.get("TNESI_BENCHMARKS")
    return Path(given).expanduser() if given else cache_folder() / "benchmarks"


@cache
def _digest() -> str:
    """Return a digest of the code that features depend on, without comments and docstrings."""
    found = hashlib.blake2b(digest_size=6)
    ours = [Path(__file__).with_name(name) for name in ("originals.py", "peers_features.py")]
    for path in (*ours, *sorted(Path(tnesi.encoders.__path__[0]).glob("*.py"))):
        tree = ast.parse(path.read_text("utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
                node.value.value = ""
        found.update(ast.dump(tree).encode())
    return found.hexdigest()


def _as_arrays(split: Split) -> dict[str, Array]:
    """Return the arrays that a file holds; those of sparse rows as three."""
    out: dict[str, Array] = {}
    for name, values in split._asdict().items():
        if sparse.issparse(values):
            rows: Any = values.tocsr()  # type: ignore[attr-defined]
            out |= {f"{name}.data": rows.data, f"{name}.indices": rows.indices, f"{name}.indptr": rows.indptr}
            out[f"{name}.shape"] = np.array(rows.shape)
        elif values is not None:
            out[name] = np.asarray(values)
    return out


def _from_arrays(arrays: dict[str, Array]) -> Split:
    def rows(name: str) -> Any:
        if f"{name}.data" not in arrays:
            return arrays.get(name)
        parts = tuple(arrays[f"{name}.{part}"] for part in ("data", "indices", "indptr"))
        return sparse.csr_array(parts, shape=tuple(arrays[f"{name}.shape"].tolist()))

    return Split(rows("X"), arrays["y"], rows("X_test"), arrays.get("y_test"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", choices=NAMES, default=NAMES, metavar="NAME", help=", ".join(NAMES))
    parser.add_argument("--folder", type=Path, default=features_folder(), help="of the features (default: %(default)s)")
    options = parser.parse_args()
    for name in options.data:
        for features in feature_kinds(name):
            try:
                X, y, T, _ = load(name, features, options.folder)
            except TnesiError as error:
                print(f"{name}, {features}: left out: {error}", flush=True)
                continue
            test = "transductive" if T is None else f"test {T.shape[0]:,}"
            sizes = "/".join(map(str, np.bincount(y)))
            classes = f"classes {sizes if len(sizes) < 60 else y.max() + 1}"
            what = f"{X.shape[0]:,} x {X.shape[1]:,} {X.dtype}, {test}, {classes}"
            print(f"{name}, {features}: {what}", flush=True)


if __name__ == "__main__":
    main()
