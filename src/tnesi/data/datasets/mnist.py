"""MNIST and data sets in its format: pairs of IDX files with images and labels."""

from __future__ import annotations

import string
from pathlib import Path

import numpy as np
import numpy.typing as npt

from tnesi.data.readers.idx import read_idx
from tnesi.data.source import ArraySource, Data, DataError
from tnesi.types import Array

CHARACTERS = np.array(list(string.digits + string.ascii_uppercase + string.ascii_lowercase))
"""The classes of EMNIST byclass, and of NIST Special Database 19, in order."""
N_DIGITS = 10

NOT_THE_PAPERS_SPLIT = "EMNIST byclass, not the paper's split"


def read_mnist(files: list[Path], name: str) -> Data:
    """Read four IDX files: training images and labels, test images and labels."""
    images, labels = _read_pair(*files[:2])
    test_images, test_labels = _read_pair(*files[2:])
    if images.shape[1:] != test_images.shape[1:]:
        raise DataError(f"the images in {files[0]} and {files[2]} differ in size", advice="download them again")
    test = Data(ArraySource(test_images), test_labels, name=f"{name}, test part")
    return Data(ArraySource(images), labels, test, name)


def read_emnist(files: list[Path], name: str, *, letters: bool) -> Data:
    """Return the digits or the letters of EMNIST byclass, upright (the files have them transposed).

    Letters are labeled with themselves, "A" to "Z" and "a" to "z". `files` are images and labels of the training and
    of the test part. Where they are of one part only, the last seventh of each class's rows becomes the test part:
    EMNIST's own proportion, and its rows are in random order.
    """
    parts = [_characters(*_read_pair(*files[i : i + 2]), letters=letters) for i in range(0, len(files), 2)]
    if len(parts) == 2:
        (images, labels), (test_images, test_labels) = parts
        note = f"{NOT_THE_PAPERS_SPLIT}: EMNIST's own training and test part"
    else:
        images, labels = parts[0]
        of_test = last_of_each_class(labels, 7)
        test_images, test_labels, images, labels = images[of_test], labels[of_test], images[~of_test], labels[~of_test]
        part = "test" if "-test-" in files[0].name else "training"
        note = (
            f"{NOT_THE_PAPERS_SPLIT}: only EMNIST's {part} part was found; the last seventh of each class's rows in it "
            "is the test part here"
        )
    test = Data(ArraySource(test_images), test_labels, name=f"{name}, test part", note=note)
    return Data(ArraySource(images), labels, test, name, note)


def last_of_each_class(labels: Array, share: int) -> npt.NDArray[np.bool_]:
    """Return a mask of the last ``1 / share`` of the rows of each class, rounded down.

    Examples
    --------
    >>> last_of_each_class(np.array(list("aabab")), 2).astype(int)
    array([0, 0, 0, 1, 1])
    """
    mask = np.zeros(len(labels), bool)
    for label in np.unique(labels):
        members = np.flatnonzero(labels == label)
        mask[members[len(members) - len(members) // share :]] = True
    return mask


def _characters(images: Array, labels: Array, *, letters: bool) -> tuple[Array, Array]:
    if labels.max(initial=0) >= len(CHARACTERS):
        raise DataError("the files are not EMNIST byclass: they have more than 62 classes")
    chosen = labels >= N_DIGITS if letters else labels < N_DIGITS
    upright = np.ascontiguousarray(images[chosen].transpose(0, 2, 1))
    return upright, CHARACTERS[labels[chosen]] if letters else labels[chosen]


def _read_pair(images_file: Path, labels_file: Path) -> tuple[Array, Array]:
    images, labels = read_idx(images_file), read_idx(labels_file)
    if images.ndim != 3 or labels.shape != images.shape[:1] or not images.dtype == labels.dtype == np.uint8:
        raise DataError(f"{images_file} and {labels_file} do not match", advice="download them again")
    return images, labels
