from __future__ import annotations

import gzip
import hashlib
import zipfile
from collections.abc import Callable
from dataclasses import replace
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pytest

from tnesi.data.datasets import named
from tnesi.data.datasets.download import Remote
from tnesi.data.datasets.mnist import CHARACTERS
from tnesi.data.datasets.named import NAMES, DataNotFoundError, describe, fetch, load_named
from tnesi.data.readers.idx import read_idx
from tnesi.data.source import Data, DataError

MNIST_FILES = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")


def idx(values: Any) -> bytes:
    values = np.asarray(values, np.uint8)
    return bytes([0, 0, 8, values.ndim]) + b"".join(n.to_bytes(4, "big") for n in values.shape) + values.tobytes()


def write_mnist(folder: Path, n: int = 6, end: str = "") -> None:
    folder.mkdir(parents=True)
    for name in MNIST_FILES:
        content = idx(np.full((n, 2, 3), n)) if "images" in name else idx(np.arange(n))
        (folder / (name + end)).write_bytes(gzip.compress(content) if end else content)


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """Return empty folders for ``TNESI_DATA`` and the cache."""
    monkeypatch.setenv("TNESI_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("no_proxy", "*")
    return tmp_path / "data", tmp_path / "cache" / "tnesi"


@pytest.fixture
def entry(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Change the registry entry of a data set."""

    def change(name: str, **facts: Any) -> None:
        monkeypatch.setitem(named._ENTRIES, name, replace(named._ENTRIES[name], **facts))

    return change


def test_names() -> None:
    assert NAMES == (
        "digits", "mnist", "fashion-mnist", "emnist-digits", "emnist-letters", "nist-digits", "nist-letters",
        "20newsgroups",
    )  # fmt: skip
    with pytest.raises(DataError, match="no data set 'minst': choose one of digits, mnist"):
        load_named("minst")


def test_digits() -> None:
    data = load_named("digits")
    assert data.test
    assert (data.X.dtype, data.X.max(), data.rows.image_shape, data.test.rows.image_shape) == (
        np.uint8, 16, (8, 8), (8, 8)
    )  # fmt: skip
    assert (len(data.rows), len(data.test.rows)) == describe("digits").rows
    share = np.bincount(data.test.y) / np.bincount(np.concatenate([data.y, data.test.y]))
    np.testing.assert_allclose(share, 400 / 1797, atol=0.005)
    np.testing.assert_array_equal(load_named("digits").X, data.X)
    assert fetch("digits").is_dir()


@pytest.mark.parametrize("name", ["mnist", "fashion-mnist"])
def test_official_files(name: str, request: pytest.FixtureRequest) -> None:
    data: Data = request.getfixturevalue(name.replace("-", "_"))
    assert data.test
    assert data.X.shape == (60_000, 784)
    assert data.test.X.shape == (10_000, 784)
    assert data.rows.image_shape == describe(name).shape == (28, 28)
    assert np.bincount(data.test.y).shape == (10,)
    assert describe(name).found


@pytest.mark.parametrize("end", ["", ".gz"])
def test_first_the_given_folder_then_the_cache(places: tuple[Path, Path], end: str) -> None:
    given, cache = places
    write_mnist(cache / "mnist", 5, end)
    data = load_named("mnist", download=False)
    assert data.X.shape == (5, 6)
    assert data.rows.image_shape == (2, 3)
    write_mnist(given / "mnist", 7, end)
    assert load_named("mnist", download=False).X.shape == (7, 6)
    assert describe("mnist").found_files == [given / "mnist" / f"{name}{end}" for name in MNIST_FILES]
    assert fetch("mnist") == given / "mnist"
    (given / "mnist" / (MNIST_FILES[3] + end)).unlink()
    assert load_named("mnist", download=False).X.shape == (5, 6)


def test_folders_of_the_system_come_last(places: tuple[Path, Path], entry: Callable[..., None], tmp_path: Path) -> None:
    write_mnist(tmp_path / "system")
    entry("mnist", also_in=(str(tmp_path / "system"),))
    assert load_named("mnist", download=False).X.shape == (6, 6)


def test_missing_data_say_what_to_do(places: tuple[Path, Path], entry: Callable[..., None]) -> None:
    with pytest.raises(DataNotFoundError) as told:
        load_named("mnist", download=False)
    for word in (*MNIST_FILES, *(str(place / "mnist") for place in places), "TNESI_DATA", "tnesi data info mnist"):
        assert word in str(told.value)
    assert not describe("mnist").found
    entry("mnist", downloads=(Remote("x", ("http://127.0.0.1:9/x",), "md5:0", 10),))
    with pytest.raises(DataNotFoundError, match=r"downloading failed .x .*127\.0\.0\.1:9/x: .*refused.*TNESI_DATA"):
        load_named("mnist")


def test_a_cache_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.delenv("TNESI_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(DataNotFoundError, match=r"downloading failed .*Not a directory.*put train"):
        load_named("mnist")


@pytest.mark.parametrize(
    ("file", "content"),
    [(0, idx(np.ones((5, 2, 3)))), (1, idx(np.ones((6, 1)))), (2, idx(np.ones((6, 3, 2)))), (0, idx(np.ones((6, 6))))],
)
def test_files_that_do_not_fit_together(places: tuple[Path, Path], file: int, content: bytes) -> None:
    write_mnist(places[0] / "mnist")
    (places[0] / "mnist" / MNIST_FILES[file]).write_bytes(content)
    with pytest.raises(DataError, match="download them again"):
        load_named("mnist", download=False)


def test_fetch_downloads_unpacks_and_tidies_up(
    places: tuple[Path, Path], entry: Callable[..., None], tmp_path: Path
) -> None:
    """EMNIST is one archive, of which four files are used."""
    site = tmp_path / "site"
    site.mkdir()
    labels = [0, 10, 36, 9, 61]
    with zipfile.ZipFile(site / "gzip.zip", "w") as archive:
        archive.writestr("gzip/emnist-letters-train-images-idx3-ubyte.gz", "not wanted")
        for part in ("train", "test"):
            images, names = idx(np.arange(5 * 784).reshape(5, 28, 28) % 251), idx(labels)
            archive.writestr(f"gzip/emnist-byclass-{part}-images-idx3-ubyte.gz", gzip.compress(images))
            archive.writestr(f"gzip/emnist-byclass-{part}-labels-idx1-ubyte.gz", gzip.compress(names))

    class Quiet(SimpleHTTPRequestHandler):
        def __init__(self, *args: Any) -> None:
            super().__init__(*args, directory=str(site))

        def log_message(self, *_: Any) -> None:
            """Log nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Quiet) as server:
        Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}).start()
        digest = f"md5:{hashlib.md5((site / 'gzip.zip').read_bytes()).hexdigest()}"
        url = f"http://127.0.0.1:{server.server_port}/gzip.zip"
        entry("emnist-letters", downloads=(Remote("gzip.zip", (url,), digest, 10**6),))
        told: list[tuple[Any, ...]] = []
        data = load_named("emnist-letters", progress=lambda *args: told.append(args))
        server.shutdown()
    assert told[-1][0] == "gzip.zip"
    assert sorted(p.name for p in (places[1] / "emnist").iterdir() if p.suffix) == sorted(
        f"{name}.gz" for name in describe("emnist-letters").files
    )
    assert data.y.tolist() == ["A", "a", "z"]
    assert data.X[0, 1] == (784 + 28) % 251, "transposed"
    assert data.test
    assert data.note == data.test.note == "EMNIST byclass, not the paper's split: EMNIST's own training and test part"


def test_emnist_digits(emnist_digits: Data) -> None:
    assert emnist_digits.test
    assert np.unique(emnist_digits.y).tolist() == list(range(10))
    check_emnist(emnist_digits, "emnist-digits")


def test_emnist_letters(emnist_letters: Data) -> None:
    assert np.unique(emnist_letters.y).tolist() == sorted(CHARACTERS[10:].tolist())
    check_emnist(emnist_letters, "emnist-letters")


def check_emnist(data: Data, name: str) -> None:
    assert data.test
    assert data.note.startswith("EMNIST byclass, not the paper's split")
    assert data.rows.image_shape == data.test.rows.image_shape == (28, 28)
    assert data.X.flags.c_contiguous
    if len(describe(name).found_files) == 2:
        assert "the last seventh" in data.note
        counts, test_counts = (np.unique(part.y, return_counts=True)[1] for part in (data, data.test))
        np.testing.assert_array_equal(test_counts, (counts + test_counts) // 7)
        assert len(data.rows) + len(data.test.rows) in describe(name).rows
    else:
        assert (len(data.rows), len(data.test.rows)) == describe(name).rows


def test_emnist_is_upright(emnist_letters: Data) -> None:
    """The mean L has its ink on the left and below, the mean T above, the mean A more below than above."""
    mean = {c: emnist_letters.X[emnist_letters.y == c].mean(axis=0).reshape(28, 28) for c in "LTA"}
    assert mean["L"][:, :14].sum() > 1.2 * mean["L"][:, 14:].sum()
    assert mean["L"][14:].sum() > 1.2 * mean["L"][:14].sum()
    assert mean["T"][:12].sum() > 1.2 * mean["T"][16:].sum()
    np.testing.assert_allclose(mean["A"][:, :14].sum(), mean["A"][:, 14:].sum(), rtol=0.25)


def test_emnist_of_one_part_is_split_by_rule(emnist_letters: Data) -> None:
    found = describe("emnist-letters").found_files
    if len(found) != 2:
        pytest.skip("both parts of EMNIST are here")
    assert emnist_letters.test
    images, labels = (read_idx(file) for file in found)
    rows = np.flatnonzero(labels == 10)
    first_of_test = images[rows[len(rows) - len(rows) // 7]].T.ravel()
    np.testing.assert_array_equal(emnist_letters.test.X[emnist_letters.test.y == "A"][0], first_of_test)
    np.testing.assert_array_equal(emnist_letters.X[emnist_letters.y == "A"][0], images[rows[0]].T.ravel())


@pytest.mark.parametrize("name", NAMES)
def test_descriptions_are_complete(name: str) -> None:
    found = describe(name)
    assert found.title
    assert found.license
    assert found.source.startswith("http")
    assert found.classes >= 10
    assert bool(found.files) == bool(found.urls) == bool(found.folders) == (name != "digits")
    for remote in named._ENTRIES[name].downloads:
        algorithm, _, digest = remote.digest.partition(":")
        assert len(digest) == {"md5": 32, "sha256": 64}[algorithm]
        assert len(remote.urls) >= 2
        assert all(url.startswith(("https://", "http://")) for url in remote.urls)
        assert remote.size in (None, remote.at_most)


def test_known_digests_match_the_files() -> None:
    """A manual copy of MNIST is the same as the download."""
    entry = named._ENTRIES["mnist"]
    files = {file.name: file for file in entry.find() or []}
    here = [(remote, files[remote.name]) for remote in entry.downloads if remote.name in files]
    if not here:
        pytest.skip("no compressed files of MNIST here")
    assert all(remote.is_whole(file) and file.stat().st_size == remote.size for remote, file in here)
