"""Data read block by block give bitwise the same results as in memory."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy import sparse

from tnesi import PoissonMixture, SimpletronClassifier
from tnesi.data import BlockSource, few_labels, open_data
from tnesi.errors import InvalidDataError
from tnesi.estimators import blocks as _blocks
from tnesi.execution import spool, store
from tnesi.model import activities
from tnesi.paper import EM, NeuralSimpletron, OnlineRule


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "_GRAIN", 256)
    for module in (spool, _blocks):
        monkeypatch.setattr(module, "IN_MEMORY", 1000)


@pytest.fixture(params=[np.uint8, np.float32, np.float64], name="counts")
def counts_of_a_kind(request: pytest.FixtureRequest, counts: Any) -> Any:
    return counts[:1700].astype(request.param)


def mapped(counts: Any, folder: Path) -> Any:
    np.save(folder / "rows.npy", counts)
    return np.load(folder / "rows.npy", mmap_mode="r")


def forms(counts: Any, folder: Path) -> dict[str, Any]:
    """The same rows in all forms that are read block by block."""
    import dask.array
    import zarr

    group = zarr.create_array(folder / "rows.zarr", shape=counts.shape, dtype=counts.dtype, chunks=(300, 21))
    group[:] = counts
    twice = np.memmap(folder / "twice", counts.dtype, "w+", shape=(2 * len(counts), counts.shape[1]))
    twice[len(counts) :] = counts
    twice.flush()
    return {
        "mapped": mapped(counts, folder),
        "slice of a mapped array": twice[len(counts) :],
        "mapped by columns": _fortran(counts, folder),
        "zarr": group,
        "dask": dask.array.from_array(counts, chunks=(401, 7)),
        "source": open_data(folder / "rows.npy").rows,
    }


def _fortran(counts: Any, folder: Path) -> Any:
    np.save(folder / "columns.npy", np.asfortranarray(counts))
    return np.load(folder / "columns.npy", mmap_mode="r")


class Learned(NamedTuple):
    weights: Any
    energy: Any
    activities: Any
    best: Any


def learned(X: Any, weight: Any = None, **parameters: Any) -> Learned:
    mixture = PoissonMixture(600, row_sum=90, max_iter=4, tol=0, random_state=0, **parameters).fit(
        X, sample_weight=weight
    )
    return Learned(mixture.means_, mixture.score_samples(X), mixture.transform(X).toarray(), mixture.predict(X))


def assert_same(one: Learned, other: Learned) -> None:
    for a, b in zip(one, other, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("weighted", [False, True])
def test_all_forms_of_the_same_rows(counts: Any, tmp_path: Path, rng: np.random.Generator, weighted: bool) -> None:
    weight = rng.uniform(0.5, 3, len(counts)) if weighted else None
    expected = learned(counts, weight)
    for name, X in forms(counts, tmp_path).items():
        print(name)
        assert_same(learned(X, weight), expected)


def test_the_size_of_blocks_does_not_matter(tmp_path: Path, rng: np.random.Generator) -> None:
    counts = rng.poisson(rng.gamma(0.3, 20.0, (1000, 12))) + 1
    np.savetxt(tmp_path / "rows.csv", counts, "%d", ",", header=",".join("abcdefghijkl"), comments="")
    source, results = open_data(tmp_path / "rows.csv").rows, []
    for size in (1, 7, 256, 999, 5000):

        class Rows:
            n_rows, n_features, dtype = 1000, 12, source.dtype

            def __len__(self) -> int:
                return 1000

            def blocks(self, _: int, size: int = size) -> Any:
                return source.blocks(size)

        results.append(PoissonMixture(50, max_iter=3, tol=0, random_state=1).fit(Rows()).means_)
    results.append(PoissonMixture(50, max_iter=3, tol=0, random_state=1).fit(counts.astype(np.uint8)).means_)
    for other in results[1:]:
        np.testing.assert_array_equal(results[0], other)


@pytest.mark.parametrize(
    "make",
    [
        lambda: SimpletronClassifier(PoissonMixture(60, max_iter=3, tol=0), random_state=0),
        lambda: SimpletronClassifier(PoissonMixture(60, max_iter=3, tol=0), n_mixtures=2, random_state=0),
        lambda: NeuralSimpletron(60, row_sum="auto", recurrent=True, rule=EM(max_iter=3, tol=0), random_state=0),
    ],
    ids=["one mixture", "committee", "recurrent"],
)
def test_classifiers(
    digits: tuple[Any, Any], tmp_path: Path, make: Callable[[], SimpletronClassifier | NeuralSimpletron]
) -> None:
    X, y = digits
    X = X.astype(np.uint8)
    few = few_labels(y, 5, np.random.default_rng(0))
    fits = [make().fit(rows, few) for rows in (X, mapped(X, tmp_path))]
    for rows in (X, mapped(X, tmp_path)):
        np.testing.assert_array_equal(fits[0].predict_proba(X), fits[1].predict_proba(rows))
    np.testing.assert_array_equal(fits[0].transduction_, fits[1].transduction_)


@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_all_zero_rows(counts: Any, tmp_path: Path, dtype: Any) -> None:
    counts = counts.astype(dtype)
    counts[[300, 1699]] = 0
    X = mapped(counts, tmp_path)
    with pytest.warns(UserWarning, match="2 of .* rows are all zero"):
        found, expected = learned(X), learned(counts)
    assert_same(found, expected)


@pytest.mark.parametrize(
    ("value", "message"),
    [(np.nan, "in row 300: .*NaN"), (-1, "in row 300: .*Negative"), (np.inf, "in row 300: .*infinity")],
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_bad_values_are_named(counts: Any, tmp_path: Path, value: float, message: str, dtype: Any) -> None:
    counts = counts.astype(dtype)
    counts[300, 3] = value
    with pytest.raises(InvalidDataError, match=message) as error:
        learned(mapped(counts, tmp_path))
    assert error.value.row == 300


def test_values_beyond_float32(counts: Any, tmp_path: Path) -> None:
    X = counts.astype(np.float64)
    X[300] *= 1e-200
    large = mapped(X, tmp_path)
    assert_same(learned(large), learned(X))
    small = counts.astype(np.float32)
    small[300] *= 1e-36
    with pytest.raises(ValueError, match="scale the data"):
        learned(mapped(small, tmp_path))


def test_what_needs_the_rows_in_memory_says_so(counts: Any, tmp_path: Path) -> None:
    X = mapped(counts, tmp_path)
    with pytest.raises(ValueError, match="the online rule needs the rows in memory"):
        NeuralSimpletron(60, row_sum=90, rule=OnlineRule(max_iter=1)).fit(X, np.arange(len(X)) % 3)
    with pytest.raises(ValueError, match="truncation=None needs the rows in memory"):
        learned(X, truncation=None)
    with pytest.raises(ValueError, match="remove these rows first"):
        learned(X, np.arange(len(X)))


def test_too_many_or_too_few_rows(counts: Any) -> None:
    class Rows:
        n_features, dtype = counts.shape[1], counts.dtype

        def __init__(self, n_rows: int) -> None:
            self.n_rows = n_rows

        def __len__(self) -> int:
            return self.n_rows

        def blocks(self, size: int) -> Any:
            return iter([counts])

    for n_rows in (len(counts) - 1, len(counts) + 1):
        with pytest.raises(ValueError, match="pass the correct number of rows"):
            learned(Rows(n_rows))


def test_a_full_disk_is_reported_in_advance(counts: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(10, 10, 0))
    with pytest.raises(OSError, match="set TMPDIR"):
        learned(BlockSource([counts], len(counts)))
    learned(open_data(mapped(counts, tmp_path)).rows)  # rows of a mapped file are not copied


def test_temporary_files_are_deleted(counts: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    learned(BlockSource(lambda: [counts], len(counts)))
    assert list(folder.iterdir()) == []


def test_many_activities_are_in_a_file(counts: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = SimpletronClassifier(PoissonMixture(50, max_iter=3, tol=0), random_state=0).fit(
        counts, np.arange(len(counts)) % 3
    )
    monkeypatch.setattr(activities, "_MOST_BYTES", 1000)
    monkeypatch.setattr(activities, "_CHUNK", 64)
    assert isinstance(activities.Activities.large(100, 5).ids, np.memmap)
    found = SimpletronClassifier(PoissonMixture(50, max_iter=3, tol=0), random_state=0).fit(
        counts, np.arange(len(counts)) % 3
    )
    assert isinstance(found.activities_, sparse.csr_array)
    assert in_file(found.activities_.data)
    assert in_file(found.activities_.indices)
    assert not in_file(expected.activities_.data)
    np.testing.assert_array_equal(found.activities_.toarray(), expected.activities_.toarray())
    np.testing.assert_array_equal(found.predict_proba(counts), expected.predict_proba(counts))


def in_file(array: Any) -> bool:
    while array is not None:
        if isinstance(array, np.memmap):
            return True
        array = getattr(array, "base", None)
    return False


def test_no_room_for_activities(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(activities, "_MOST_BYTES", 1000)

    def full(*_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.posix_fallocate", full)
    with pytest.raises(OSError, match=r"has no room for it \(No space left on device\): set TMPDIR"):
        activities.Activities.large(100, 5)


def test_predictions_of_too_many_or_too_few_rows(counts: Any) -> None:
    mixture = PoissonMixture(10, max_iter=2, tol=0, random_state=0).fit(counts)
    for n_rows in (len(counts) - 1, len(counts) + 1):
        with pytest.raises(ValueError, match="pass the correct number of rows"):
            mixture.predict(BlockSource([counts], n_rows))


@pytest.mark.parametrize("shape", [(-1,), (10, 10, -1)])
def test_mapped_arrays_of_other_dimensions(tmp_path: Path, shape: Any) -> None:
    X = mapped(np.ones((100, 10), np.uint8), tmp_path).reshape(shape)
    with pytest.raises(ValueError, match=r"Expected 2D array|Found array with dim 3"):
        PoissonMixture(2).fit(X)
