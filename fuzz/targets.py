"""Fuzzing targets: every reader of files, with small valid files as seeds.

A target takes any bytes as a file and reads it to the end. It may refuse it by an error of this package that says what
to do; every other exception is a finding.
"""

from __future__ import annotations

import gzip
import io
import json
import warnings
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import safe_open
from safetensors.numpy import save_file
from scipy import sparse

from tnesi import PoissonMixture, SimpletronClassifier, load, make_classifier, save
from tnesi.data import open_data
from tnesi.data.label_files import read_labels
from tnesi.errors import TnesiError
from tnesi.model_file.checksum import checksum
from tnesi.studio.project_file import StoreError
from tnesi.studio.store import Store

ROWS = np.arange(24, dtype=np.uint8).reshape(6, 4)
LABELS = np.array([0, 0, 1, 1, 2, 2])
SEPARATOR = b"\0\0--\0\0"
"""Between the files of a folder, and between the header and the arrays of a model."""


@dataclass(frozen=True)
class Target:
    """A reader: a function of bytes and an empty folder, and valid bytes."""

    read: Callable[[bytes, Path], object]
    seeds: Callable[[Path], Iterator[bytes]]

    def accepts(self, data: bytes, folder: Path) -> bool:
        """Return whether the bytes were read; False if they were refused as they should be."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                self.read(data, folder)
            except (TnesiError, StoreError):
                return False
        return True


def _read_file(data: bytes, folder: Path) -> None:
    _written(data, folder / "data")
    _read_whole(folder / "data")


def _read_whole(path: Path) -> None:
    found = open_data(path)
    for _ in found.rows.items():
        pass
    with suppress(TnesiError):  # documents and mixed tables are no rows
        for _ in found.rows.blocks():
            pass


def _written(data: bytes, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


# Arrays


def _npy(_: Path) -> Iterator[bytes]:
    for array in (ROWS, ROWS.astype(">f8"), np.asfortranarray(ROWS), ROWS.reshape(3, 2, 4)):
        out = io.BytesIO()
        np.save(out, array)
        yield out.getvalue()


def _npz(_: Path) -> Iterator[bytes]:
    files = [io.BytesIO() for _ in range(4)]
    np.savez(files[0], X=ROWS, y=LABELS)
    np.savez_compressed(files[1], X=ROWS)
    sparse.save_npz(files[2], sparse.csr_array(ROWS))
    sparse.save_npz(files[3], sparse.csc_array(ROWS), compressed=False)
    for file in files:
        yield file.getvalue()


def _idx(_: Path) -> Iterator[bytes]:
    for array, code in ((ROWS, 8), (ROWS.reshape(3, 2, 4), 8), (ROWS.astype(">f4"), 13)):
        file = bytes([0, 0, code, array.ndim]) + b"".join(n.to_bytes(4, "big") for n in array.shape) + array.tobytes()
        yield file
    yield gzip.compress(file, mtime=0)


def _h5ad(_: Path) -> Iterator[bytes]:
    matrix = sparse.csr_array(ROWS)
    about = {"obs@_index": "names", "obs@column-order": ["label"], "obs/names": [f"row{n}" for n in range(6)]}
    genes = {"var@_index": "names", "var/names": ["w", "x", "y", "z"]}
    of_rows = {f"X/{name}": getattr(matrix, name) for name in ("data", "indices", "indptr")}
    of_rows |= {"X@encoding-type": "csr_matrix", "X@shape": matrix.shape}
    codes = {"obs/label/codes": np.array([0, 1, -1, 0, 1, 1], np.int8), "obs/label/categories": ["a", "b"]}
    for content in (
        {"X": ROWS, **about, **genes, "obs/label": ["a", "a", "b", "b", "c", "c"]},
        {**of_rows, **about, **codes},
        {"X": ROWS, "layers/counts": ROWS, **about, "obs/label/values": LABELS, "obs/label/mask": LABELS > 1},
    ):
        arrays = {name: np.asarray(value) for name, value in content.items()}
        arrays = {name: array.astype("S") if array.dtype.kind == "U" else array for name, array in arrays.items()}
        yield SEPARATOR.join(
            f"{name} {array.dtype.str} {','.join(map(str, array.shape))}\n".encode() + array.tobytes()
            for name, array in arrays.items()
        )


def _read_h5ad(data: bytes, folder: Path) -> None:
    """Read a file with any content, but made by HDF5's own library, which hangs on some damaged files."""
    import h5py

    with h5py.File(folder / "data.h5ad", "w") as file:
        for part in data.split(SEPARATOR):
            head, _, content = part.partition(b"\n")
            with suppress(Exception):  # no name, type or shape, or a name that is there already
                name, dtype, shape = head.decode().split(" ")
                sizes = [int(size) for size in shape.split(",") if size]
                array = np.frombuffer(content, dtype)[: int(np.prod(sizes))].reshape(sizes)
                place, _, attribute = name.partition("@")
                if attribute:
                    file.require_group(place).attrs[attribute] = array
                else:
                    file[place] = array
    _read_whole(folder / "data.h5ad")


def _zarr(folder: Path) -> Iterator[bytes]:
    import zarr

    settings: tuple[dict[str, Any], ...] = (
        {"zarr_format": 2},
        {"zarr_format": 3},
        {"zarr_format": 3, "shards": (4, 4)},
    )
    for i, how in enumerate(settings):
        store = zarr.create_array(
            folder / str(i),
            shape=ROWS.shape,
            dtype=ROWS.dtype,
            chunks=(2, 4),
            config={"write_empty_chunks": True},
            **how,
        )
        store[:] = ROWS
        files = [path for path in sorted((folder / str(i)).rglob("*")) if path.is_file()]
        yield SEPARATOR.join(
            path.relative_to(folder / str(i)).as_posix().encode() + b"\n" + path.read_bytes() for path in files
        )


def _read_zarr(data: bytes, folder: Path) -> None:
    store = folder / "store.zarr"
    store.mkdir()
    for part in data.split(SEPARATOR):
        name, _, content = part.partition(b"\n")
        steps = name.decode("utf-8", "replace").replace("\0", "").split("/")
        if len(name) < 50 and not {"", ".", ".."} & set(steps):  # what stays in the folder
            with suppress(OSError):  # a file and a folder of one name
                _written(content, store.joinpath(*steps))
    _read_whole(store)


# Tables and texts


def _csv(_: Path) -> Iterator[bytes]:
    numbers = "a,b,label\n1,2.5,x\n3,4e2,y\n-5,,\n"
    yield numbers.encode()
    yield numbers.replace(",", ";").encode("utf-8-sig")
    yield b"1\t2\n3\t4\n"
    yield b'name,joined,plan,label\n"A, B",2021-02-03,basic,x\n"say ""hi""",2022-12-31T10:00:00Z,plus,\n'
    yield "größe,art\n1,süß\n2,herb\n".encode("utf-16")
    yield "größe,art\n1,süß\n2,herb\n".encode("cp1252")
    yield gzip.compress(numbers.encode(), mtime=0)


def _json_lines(_: Path) -> Iterator[bytes]:
    yield b'{"a": 1, "b": "x", "label": "u"}\n{"a": 2.5, "b": null, "label": null}\n'
    yield b'{"text": "some words", "label": 1}\n\n{"text": "others"}\n'
    yield b'{"v": [1, 2, 3]}\n{"v": [4, 5, 6]}\n'
    yield b'{"a": true}\r\n{"a": false}\r\n'


def _parquet(folder: Path) -> Iterator[bytes]:
    import pyarrow as pa
    import pyarrow.parquet

    for i, columns in enumerate(
        (
            {"a": [1, 2, 3], "b": [0.5, 1.5, 2.0], "label": ["x", None, "y"]},
            {"text": ["some words", "others", ""], "when": [1, 2, 3]},
            {"v": [[1.0, 2.0], [3.0, 4.0]], "label": [0, 1]},
        )
    ):
        pyarrow.parquet.write_table(pa.table(columns), folder / str(i), compression=("none", "snappy", "gzip")[i])
        yield (folder / str(i)).read_bytes()


def _documents(_: Path) -> Iterator[bytes]:
    yield "Some words, ünd öthers.\n".encode()
    yield "日本語".encode("utf-16")
    yield b"\xff\xfe\x00"


def _read_documents(data: bytes, folder: Path) -> None:
    _written(b"some other words", folder / "texts" / "a" / "first.txt")
    _written(data, folder / "texts" / "b" / "second.txt")
    _read_whole(folder / "texts")


# Pictures


def _images(_: Path) -> Iterator[bytes]:
    from PIL import Image

    color = np.arange(4 * 5 * 3, dtype=np.uint8).reshape(4, 5, 3)
    for name in ("PNG", "JPEG", "BMP", "GIF", "TIFF", "PPM", "WEBP"):
        for mode in ("L", "RGB"):
            out = io.BytesIO()
            Image.fromarray(color).convert(mode).save(out, name)
            yield out.getvalue()


def _read_images(data: bytes, folder: Path) -> None:
    _written(next(_images(folder)), folder / "photos" / "first.png")
    _written(data, folder / "photos" / "second.png")
    _read_whole(folder / "photos")


# Labels


def _label_files(folder: Path) -> Iterator[bytes]:
    yield b"cat\n\ndog\ncat\n\ndog\n"
    yield b"row,label\n0,cat\n5,dog\n"
    import pyarrow as pa
    import pyarrow.parquet

    for columns in ({"label": ["a", None, "b", "a", "b", "c"]}, {"row": [0, 5], "label": [1, 2]}):
        pyarrow.parquet.write_table(pa.table(columns), folder / "labels.parquet")
        yield (folder / "labels.parquet").read_bytes()
    for array in (LABELS, np.array(["a", "b", "", "a", "b", "c"])):
        out = io.BytesIO()
        np.save(out, array)
        yield out.getvalue()


def _read_label_file(data: bytes, folder: Path) -> None:
    _written(data, folder / "labels")
    read_labels(folder / "labels", len(ROWS))


# Models


@cache
def _models() -> tuple[Any, ...]:
    few = np.where(np.arange(6) % 2, -1, LABELS)
    plain = SimpletronClassifier(PoissonMixture(4, max_iter=2, tol=0), random_state=0)
    pair = SimpletronClassifier(PoissonMixture(4, max_iter=2, tol=0), n_mixtures=2, random_state=0)
    vectors = make_classifier("vectors", mixture=PoissonMixture(4, max_iter=2, tol=0), random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return plain.fit(ROWS, few), pair.fit(ROWS, few), vectors.fit(ROWS - 10.0, few)


def _model_files(folder: Path) -> Iterator[bytes]:
    for i, model in enumerate(_models()):
        save(model, folder / f"{i}.tnesi")
        yield (folder / f"{i}.tnesi").read_bytes()


def _read_model_file(data: bytes, folder: Path) -> None:
    _written(data, folder / "model.tnesi")
    _use(load(folder / "model.tnesi"))


def _use(model: Any) -> None:
    n_features = getattr(model, "n_features_in_", 0)
    if 0 < n_features < 1000:
        model.predict(np.ones((2, n_features), np.float32))


def _model_parts(folder: Path) -> Iterator[bytes]:
    """Yield the header and the arrays of models: changes of these are not noticed by checksums."""
    for number, file in enumerate(_model_files(folder)):
        (folder / "whole.tnesi").write_bytes(file)
        with safe_open(folder / "whole.tnesi", framework="np") as parts:
            yield bytes([number]) + parts.metadata()["tnesi"].encode() + SEPARATOR


def _read_model_parts(data: bytes, folder: Path) -> None:
    header, _, content = data[1:].partition(SEPARATOR)
    text = header.decode("utf-8", "replace")
    whole = _array_parts()[(data[0] if data else 0) % len(_models())]
    arrays = {name: array.copy() for name, array in whole.items()}
    for array in arrays.values():  # the rest of the bytes replaces the first of each array
        values = array.reshape(-1).view(np.uint8)
        new = np.frombuffer(content[: values.size], np.uint8)
        values[: new.size] = new
        content = content[values.size :]
    kinds = {"float32": "F32", "float64": "F64", "int32": "I32", "int64": "I64", "bool": "BOOL", "uint8": "U8"}
    described = {name: (kinds[array.dtype.name], array.shape) for name, array in arrays.items()}
    metadata = {"tnesi": text, "checksum": checksum(text, described, arrays)}
    save_file(arrays, folder / "model.tnesi", metadata)
    _use(load(folder / "model.tnesi"))


@cache
def _array_parts() -> tuple[dict[str, Any], ...]:
    import tempfile

    found = []
    with tempfile.TemporaryDirectory() as folder:
        for _ in _model_parts_written(Path(folder)):
            with safe_open(Path(folder) / "whole.tnesi", framework="np") as parts:
                found.append({name: parts.get_tensor(name) for name in parts.keys()})  # noqa: SIM118 (not a dict)
    return tuple(found)


def _model_parts_written(folder: Path) -> Iterator[None]:
    for file in _model_files(folder):
        (folder / "whole.tnesi").write_bytes(file)
        yield


# Projects of the studio


def _projects(folder: Path) -> Iterator[bytes]:
    path = folder / "labels.sqlite"
    with closing(Store(path, "fingerprint", "data", len(ROWS))) as store:
        store.label(0, "cat").result()
        store.skip(1).result()
        store.rename("cat", "dog").result()
    yield path.read_bytes()


def _read_project(data: bytes, folder: Path) -> None:
    _written(data, folder / "labels.sqlite")
    with closing(Store(folder / "labels.sqlite", "fingerprint", "data", len(ROWS))) as store:
        json.dumps(sorted(store.view.labels))


TARGETS = {
    "npy": Target(_read_file, _npy),
    "npz": Target(_read_file, _npz),
    "idx": Target(_read_file, _idx),
    "h5ad": Target(_read_h5ad, _h5ad),
    "zarr": Target(_read_zarr, _zarr),
    "csv": Target(_read_file, _csv),
    "json-lines": Target(_read_file, _json_lines),
    "parquet": Target(_read_file, _parquet),
    "documents": Target(_read_documents, _documents),
    "images": Target(_read_images, _images),
    "labels": Target(_read_label_file, _label_files),
    "model": Target(_read_model_file, _model_files),
    "model-parts": Target(_read_model_parts, _model_parts),
    "project": Target(_read_project, _projects),
}
