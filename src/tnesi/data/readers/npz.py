"""``.npz`` files: zip archives of arrays or of a sparse matrix. All sizes are checked before memory is allocated."""

from __future__ import annotations

import zipfile
from pathlib import Path

from tnesi.data.readers.array_groups import read_group
from tnesi.data.readers.arrays import read_header, read_values
from tnesi.data.readers.idx import MOST_PER_BYTE
from tnesi.data.readers.sparse import SPARSE_PARTS, CsrSource, sparse_from_parts
from tnesi.data.source import Data, DataError, array_source, check_room, damaged
from tnesi.types import Array


def read_npz(path: Path, label_column: str | int | None = None) -> Data:
    """Open a ``.npz`` file as data: arrays with optional labels and test part, or a SciPy sparse matrix."""
    with damaged(path), zipfile.ZipFile(path) as archive:
        names = array_names(archive)
        if "format" in names and "shape" in names:
            if label_column is not None:
                raise DataError(
                    "{path} is a sparse matrix without labels",
                    advice="use {labels}",
                    parameter="label_column",
                    path=path,
                )
            parts = {name: read_array(archive, name) for name in names if name in SPARSE_PARTS}
            return Data(CsrSource(sparse_from_parts(parts, path)), name=path.name)
        return read_group(
            names,
            label_column,
            path,
            open_rows=lambda name: array_source(read_array(archive, name)),
            read_labels=lambda name, n_rows: read_array(archive, name),
        )


def array_names(archive: zipfile.ZipFile) -> list[str]:
    """Return the names of the arrays in a ``.npz`` file, as in `numpy.load`."""
    return [info.filename.removesuffix(".npy") for info in archive.infolist() if info.filename.endswith(".npy")]


def read_array(archive: zipfile.ZipFile, name: str) -> Array:
    """Read one array after checking that the zip directory, the array header and the file size agree."""
    where = f"{name} in {archive.filename}"
    info = archive.getinfo(f"{name}.npy")
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) or info.flag_bits & 1:
        raise DataError(f"{where} is encrypted or uses an unsupported compression", advice="save it again")
    there = Path(str(archive.filename)).stat().st_size
    most = min(info.compress_size, there) * (MOST_PER_BYTE if info.compress_type == zipfile.ZIP_DEFLATED else 1)
    with archive.open(info) as file:
        header = read_header(file, where)
        if header.offset + header.n_bytes != info.file_size or info.file_size > most:
            raise DataError(
                f"{where}: its header says {header.n_bytes} bytes of values, which do not fit its "
                f"{info.compress_size} bytes in the archive",
                advice="download it or save it again",
            )
        check_room(header.n_bytes, where)
        values = read_values(file, header.dtype, header.shape[::-1] if header.fortran else header.shape, where)
    return values.T if header.fortran else values
