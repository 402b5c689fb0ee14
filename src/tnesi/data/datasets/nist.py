"""NIST Special Database 19: 128 x 128 scans of single characters, by class, prepared as in the paper.

The tree is ``by_class/CODE/hsf_N/*.png``: CODE is the character's ASCII code in hexadecimal, ``hsf_N`` the collection
of forms it is from. ``hsf_4`` (written by students) is the test part, all others are for training, which gives the
paper's 344,307 + 58,646 digits and 387,361 + 23,941 letters. The folders ``train_CODE`` repeat images and are left out.
"""

from __future__ import annotations

import io
import os
import re
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np
import numpy.typing as npt

from tnesi.data.datasets.download import Progress
from tnesi.data.datasets.mnist import CHARACTERS, N_DIGITS
from tnesi.data.optional import needed
from tnesi.data.source import ArraySource, Data, DataError, check_room, damaged
from tnesi.system.files import replacing
from tnesi.types import Array

Image = npt.NDArray[np.uint8]

_SIDE, _BOX, _SCAN = 28, 20, 128
_MOST_BYTES = 2**17  # of a scan's file; they have about a thousand
_VERSION = 1  # of what `preprocess` does: part of the cache's name
_SCAN_FILE = re.compile(r"(?:^|/)(?P<code>[3-7][0-9A-Fa-f])/hsf_(?P<part>[0-9])/[^/.]+\.png$")
_TEST_PART = "4"
_PILLOW = ("PIL.Image", "preparing the images of NIST")


def preprocess(image: Image) -> Image:
    """Return a scanned character as MNIST has them: bright on black, 28 x 28, centered.

    1. Invert: ink becomes bright.
    2. Cut out the rectangle that holds the ink; its size and place on the form are lost.
    3. Rescale it, antialiased and with its proportions kept, to fit into 20 x 20 pixels.
    4. Put it into 28 x 28 pixels so that its center of mass is in the middle, to the nearest pixel, or as near to
       it as is possible without cutting anything off.

    Parameters
    ----------
    image : (height, width) array of uint8
        Dark ink on white paper. Without any ink the result is black.

    Examples
    --------
    >>> scan = np.full((128, 128), 255, np.uint8)
    >>> scan[20:60, 90:100] = 0
    >>> small = preprocess(scan)
    >>> rows, columns = np.nonzero(small)
    >>> [int(n) for n in (rows.min(), rows.max(), columns.min(), columns.max())]
    [4, 23, 12, 16]
    """
    pillow = needed(*_PILLOW)
    ink = 255 - np.asarray(image, np.uint8)
    rows, columns = np.flatnonzero(ink.any(axis=1)), np.flatnonzero(ink.any(axis=0))
    out = np.zeros((_SIDE, _SIDE), np.uint8)
    if not rows.size:
        return out
    ink = ink[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
    scale = _BOX / max(ink.shape)
    height, width = (max(1, round(n * scale)) for n in ink.shape)
    small = np.asarray(pillow.fromarray(ink).resize((width, height), pillow.Resampling.BILINEAR))
    top, left = _corner(small.sum(axis=1, dtype=float)), _corner(small.sum(axis=0, dtype=float))
    out[top : top + height, left : left + width] = small
    return out


def _corner(mass: Array) -> int:
    """Return where the first of these rows (or columns) has to be for the center of mass to be in the middle."""
    total = float(mass.sum())
    center = float(mass @ np.arange(len(mass))) / total if total else (len(mass) - 1) / 2
    return min(max(round((_SIDE - 1) / 2 - center), 0), _SIDE - len(mass))


def read_nist(path: Path, name: str, cache: Path, progress: Progress | None = None, *, letters: bool) -> Data:
    """Return the digits or letters of the tree at `path` (the folder ``by_class``, or ``by_class.zip`` as it comes).

    The first time takes minutes; the prepared images are then kept in the folder `cache`. Rows are in a fixed random
    order. Letters are labeled with themselves.
    """
    kept = cache / f"{name}-v{_VERSION}-{_key(path)}.npz"
    prepared = _read_kept(kept)
    if prepared is None:
        cache.mkdir(parents=True, exist_ok=True)
        prepared = _prepare(path, name, progress, letters=letters)
        with replacing(kept) as temporary, temporary.open("wb") as file:
            np.savez(file, **prepared._asdict())
    test = Data(ArraySource(prepared.test_images), prepared.test_labels, name=f"{name}, test part")
    return Data(ArraySource(prepared.images), prepared.labels, test, name)


class _Prepared(NamedTuple):
    images: Array
    labels: Array
    test_images: Array
    test_labels: Array


def _key(path: Path) -> str:
    """Return what changes when the tree does: the number of its files, or the size of the archive."""
    if path.is_dir():
        return str(sum(1 for part in path.glob("??/hsf_?") for _ in os.scandir(part)))
    return f"zip{path.stat().st_size}"


@contextmanager
def _opened(path: Path) -> Iterator[tuple[list[str], Callable[[str], bytes]]]:
    """Give the names of all files in the tree, and a function that reads one (no more of it than a scan can have)."""
    if path.is_dir():
        names = [file.relative_to(path).as_posix() for file in path.glob("??/hsf_?/*.png")]
        yield names, lambda name: _start((path / name).open("rb"))
        return
    with damaged(path):
        archive = zipfile.ZipFile(path)
    with archive:
        yield archive.namelist(), lambda name: _start(archive.open(name))


def _start(file: IO[bytes]) -> bytes:
    with file:
        return file.read(_MOST_BYTES)


def _prepare(path: Path, name: str, progress: Progress | None, *, letters: bool) -> _Prepared:
    needed(*_PILLOW)
    classes = set(CHARACTERS[N_DIGITS:] if letters else CHARACTERS[:N_DIGITS])
    with _opened(path) as (names, read):
        matches = [match for file in sorted(names) if (match := _SCAN_FILE.search(file))]
        scans = [m for m in matches if chr(int(m["code"], 16)) in classes]
        labels = np.array([chr(int(m["code"], 16)) for m in scans], "U1")
        is_test = np.array([m["part"] == _TEST_PART for m in scans], bool)
        if not is_test.any() or is_test.all():
            missing = "training images (30/hsf_0/*.png" if is_test.any() else "test images (30/hsf_4/*.png"
            raise DataError(f"{path} has no {missing} and so on) for {name}", advice="unpack by_class.zip again")
        check_room(len(scans) * _SIDE**2, f"{len(scans)} images")
        images = np.empty((len(scans), _SIDE, _SIDE), np.uint8)
        for i, scan in enumerate(scans):
            with damaged(f"{scan.string} in {path}"):
                images[i] = preprocess(_decode(read(scan.string)))
            if progress and (i % 1000 == 0 or i == len(scans) - 1):
                progress(f"{name}: preparing images", i + 1, len(scans))
    order = np.random.default_rng(0).permutation(len(scans))
    train, test = order[~is_test[order]], order[is_test[order]]
    if not letters:
        labels = labels.astype(np.uint8)
    return _Prepared(images[train], labels[train], images[test], labels[test])


def _decode(content: bytes) -> Image:
    with needed(*_PILLOW).open(io.BytesIO(content), formats=["PNG"]) as picture:
        if picture.size != (_SCAN, _SCAN):
            raise DataError(f"it has {picture.size[0]} x {picture.size[1]} pixels instead of {_SCAN} x {_SCAN}")
        return np.asarray(picture.convert("L"))


def _read_kept(file: Path) -> _Prepared | None:
    """Return what an earlier call prepared; None if there is nothing, or nothing that can be read."""
    try:
        with file.open("rb") as opened, np.load(opened, allow_pickle=False) as kept:
            return _Prepared(*(kept[name] for name in _Prepared._fields))
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
        return None
