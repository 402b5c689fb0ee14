"""A killed fit resumes from its last iteration, with the same result as an uninterrupted one."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import load, load_file, save_file

from tnesi import PoissonMixture, SimpletronClassifier
from tnesi.data import few_labels
from tnesi.errors import InvalidParameterError
from tnesi.execution import Local, store
from tnesi.paper import EM, NeuralSimpletron, OnlineRule
from tnesi.training.checkpoint import FORMAT, CheckpointError

KILLED_AT_RANDOM = """
import json, os, signal, sys, time
from pathlib import Path
import numpy as np
from sklearn.datasets import load_digits
from tnesi import PoissonMixture, SimpletronClassifier
from tnesi.estimators import blocks as _blocks
from tnesi.data import few_labels
from tnesi.execution import Local, spool, store

folder, n_kills = Path(sys.argv[1]), int(sys.argv[2])
store._GRAIN = 256
X, y = (values[:900] for values in load_digits(return_X_y=True))
few = few_labels(y, 3, np.random.default_rng(0))
np.save(folder / "rows.npy", X.astype(np.uint8))

def fit(name, execution=None):
    X = np.load(folder / "rows.npy", mmap_mode="r")
    mixture = PoissonMixture(560, row_sum=180, max_iter=12, tol=0, execution=execution, n_jobs=2)
    clf = SimpletronClassifier(mixture, n_mixtures=2, random_state=3).fit(X, few)
    np.savez(folder / f"{name}.tmp.npz", *(m.means_ for m in clf.mixtures_), clf.predict_proba(X))
    os.replace(folder / f"{name}.tmp.npz", folder / f"{name}.npz")

began = time.perf_counter()
fit("undisturbed")
seconds = time.perf_counter() - began
rng, kills, stories, sizes = np.random.default_rng(int(time.time())), 0, 0, []
while kills < n_kills:
    stories += 1
    if stories == 2:  # the second time the rows are in a file
        spool.IN_MEMORY = _blocks.IN_MEMORY = 1000
    state = folder / f"state-{stories}"
    while True:
        child = os.fork()
        if child == 0:
            try:
                fit("killed", Local(checkpoint=state, resume=True))
            except BaseException as error:
                print(repr(error), file=sys.stderr, flush=True)
                os._exit(1)
            os._exit(0)
        if kills < 25 * stories:  # then it may complete
            time.sleep(rng.uniform(0, 0.7 * seconds))
            os.kill(child, signal.SIGKILL)
        status = os.waitpid(child, 0)[1]
        if os.WIFEXITED(status):
            assert os.WEXITSTATUS(status) == 0
            break
        kills += 1
        sizes.append(sum(f.stat().st_size for f in state.iterdir()) if state.exists() else 0)
    with np.load(folder / "undisturbed.npz") as one, np.load(folder / "killed.npz") as other:
        assert all(np.array_equal(one[name], other[name]) for name in one.files)
    (folder / "killed.npz").unlink()
print(json.dumps({"kills": kills, "stories": stories, "largest": max(sizes), "end": sizes[-1]}))
"""


@pytest.mark.slow(first=True)
def test_killed_at_random_moments(tmp_path: Path) -> None:
    words = [sys.executable, "-c", KILLED_AT_RANDOM, str(tmp_path), "50"]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=500)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    print(found)
    assert found["kills"] >= 50
    assert found["stories"] >= 2
    whole = 2 * (560 * 64 * 8 + 900 * 15 * 8)  # two mixtures
    assert found["largest"] < 3 * whole


class Stop(Exception):  # noqa: N818 - nothing went wrong
    pass


def stop_after(n: int) -> Any:
    def callback(record: dict[str, Any]) -> None:
        if record["iteration"] == n:
            raise Stop

    return callback


def mixture(
    folder: Path | None = None, *, resume: bool = False, callback: Any = None, **parameters: Any
) -> PoissonMixture:
    settings = {"n_components": 60, "row_sum": 180, "max_iter": 7, "tol": 0, "random_state": 0} | parameters
    return PoissonMixture(execution=Local(checkpoint=folder, resume=resume, callback=callback), **settings)


@pytest.mark.parametrize("parameters", [{}, {"search": "exact"}, {"n_components": 600}, {"prior_strength": 0.0}])
@pytest.mark.parametrize("grain", [256, 65536])
def test_the_same_bits(
    digits: tuple[Any, Any],
    tmp_path: Path,
    parameters: dict[str, Any],
    grain: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(store, "_GRAIN", grain)
    X, _ = digits
    expected = mixture(**parameters).fit(X)
    for n in (0, 1, 4):
        with pytest.raises(Stop):
            mixture(tmp_path, callback=stop_after(n), **parameters).fit(X)
        assert len(mixture(tmp_path, resume=True, **parameters | {"max_iter": n + 2}).fit(X).history_) == n + 3
        found = mixture(tmp_path, resume=True, **parameters).fit(X)
        again = mixture(tmp_path, resume=True, **parameters).fit(X)  # there is nothing left to do
        for other in (found, again):
            np.testing.assert_array_equal(expected.means_, other.means_)
            np.testing.assert_array_equal(expected.score_samples(X), other.score_samples(X))
            assert [r["free_energy"] for r in expected.history_] == [r["free_energy"] for r in other.history_]


def test_a_random_start_is_remembered(digits: tuple[Any, Any], tmp_path: Path) -> None:
    X, y = digits
    few = few_labels(y, 3, np.random.default_rng(0))

    def fitted(*, resume: bool = False) -> SimpletronClassifier:
        first_layer = mixture(tmp_path, resume=resume, n_components=50, max_iter=5, random_state=None)
        return SimpletronClassifier(first_layer).fit(X, few)

    first = fitted()
    np.testing.assert_array_equal(first.predict_proba(X), fitted(resume=True).predict_proba(X))
    assert not np.array_equal(first.mixture_.means_, fitted().mixture_.means_)


def test_a_resumed_fit_stops_at_the_same_iteration(digits: tuple[Any, Any], tmp_path: Path) -> None:
    X, _ = digits

    def enough(record: dict[str, Any]) -> bool:
        return bool(record["iteration"] == 2)

    stopped = mixture(tmp_path, callback=enough).fit(X)
    assert mixture(tmp_path, callback=enough, resume=True).fit(X).n_iter_ == stopped.n_iter_ == 2
    gone_on = mixture(tmp_path, resume=True).fit(X)  # without interruption
    np.testing.assert_array_equal(gone_on.means_, mixture().fit(X).means_)
    converged = mixture(tmp_path / "converged", tol=0.5).fit(X)
    assert converged.converged_
    again = mixture(tmp_path / "converged", tol=0.5, resume=True).fit(X)
    assert again.converged_
    assert again.n_iter_ == converged.n_iter_
    finer = mixture(tmp_path / "converged", tol=0, resume=True).fit(X)
    np.testing.assert_array_equal(finer.means_, mixture(tol=0).fit(X).means_)


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"row_sum": 170}, "row_sum"),
        ({"n_components": 61}, "n_components"),
        ({"truncation": 14}, "truncation"),
        ({"prior_strength": 2}, "prior_strength"),
        ({"search": "exact"}, "search"),
        ({"weight": 2}, "data"),
        ({"rows": 5}, "data, rows"),
    ],
)
def test_another_fit_does_not_resume(
    digits: tuple[Any, Any], tmp_path: Path, change: dict[str, Any], what: str
) -> None:
    X, _ = digits
    mixture(tmp_path).fit(X)
    weight = np.full(len(X), change.pop("weight")) if "weight" in change else None
    rows = X[change.pop("rows") :] if "rows" in change else X
    with pytest.raises(CheckpointError, match=f"a fit with different {what}: pass"):
        mixture(tmp_path, resume=True, **change).fit(rows, sample_weight=weight)


def test_without_resume_it_starts_over(digits: tuple[Any, Any], tmp_path: Path) -> None:
    X, _ = digits
    mixture(tmp_path, row_sum=170).fit(X)
    np.testing.assert_array_equal(mixture(tmp_path).fit(X).means_, mixture().fit(X).means_)


@pytest.mark.parametrize(
    "damage",
    ["truncated", "text", "empty", "other format", "ids", "no header", "no gain", "history", "fields", "folder"],
)
def test_damaged_states_are_refused(digits: tuple[Any, Any], tmp_path: Path, damage: str) -> None:
    X, _ = digits
    mixture(tmp_path).fit(X)
    path = tmp_path / "mixture-1.state"
    whole, arrays = path.read_bytes(), load_file(path)
    length = int.from_bytes(whole[:8], "little")
    header = json.loads(whole[8 : 8 + length])["__metadata__"]
    match damage:
        case "truncated":
            path.write_bytes(whole[:-100])
        case "text":
            path.write_text("hello")
        case "empty":
            path.write_bytes(b"")
        case "other format":
            changed = {key: value.replace(f'"format": {FORMAT}', '"format": 99') for key, value in header.items()}
            save_file(arrays, path, changed)
        case "ids":
            arrays["ids"][3, 3] = 60
            save_file(arrays, path, header)
        case "no header":
            save_file(arrays, path)
        case "no gain":
            save_file(arrays, path, {key: value.replace('"gain"', '"pain"') for key, value in header.items()})
        case "history":
            save_file(arrays, path, {key: value.replace('"seconds"', '"ages"') for key, value in header.items()})
        case "fields":
            arrays |= {name: arrays[name][:50].copy() for name in ("w", "log_w", "log_w_sum", "w_sum")}
            arrays["ids"] = np.minimum(arrays["ids"], 49)
            save_file(arrays, path, header)
        case "folder":
            path.unlink()
            path.mkdir()
    with pytest.raises(CheckpointError, match="start over"):
        mixture(tmp_path, resume=True).fit(X)
    for seeds in ("{", "[Infinity]", "[-5]", "[99999999999999]", "[" * 100_000):
        (tmp_path / "seeds.json").write_text(seeds)
        with pytest.raises(CheckpointError, match="start over"):
            mixture(tmp_path, resume=True).fit(X)
    if path.is_dir():
        path.rmdir()
    assert mixture(tmp_path).fit(X).n_iter_ == 7


def put(value: Any) -> Any:
    def damage(array: Any, place: int) -> Any:
        array.reshape(-1)[place % array.size] = value
        return array

    return damage


def repeat_id(ids: Any, place: int) -> Any:
    ids[place % len(ids), 1] = ids[place % len(ids), 0]
    return ids


FLOATS = ("w", "log_w", "log_w_sum", "w_sum", "s", "log_sum")
DAMAGES: dict[str, tuple[tuple[str, ...], Any]] = {
    "nan": (FLOATS, put(np.nan)),
    "inf": (FLOATS, put(np.inf)),
    "-inf": (FLOATS, put(-np.inf)),
    "negative": (("w", "w_sum", "s"), put(-0.5)),
    "zero": (("w", "w_sum"), put(0)),
    "large": (("w", "log_w", "log_w_sum", "s"), put(1e6)),
    "below any field": (("ids", "lists"), put(-2)),
    "above all fields": (("ids", "lists"), put(600)),
    "twice the same field": (("ids", "lists"), repeat_id),
    "narrower": (("w", "log_w", "ids", "s"), lambda array, _: array[:, :-1].copy()),
    "wider": (("w", "log_w", "ids", "s"), lambda array, _: np.pad(array, ((0, 0), (0, 16)))),
    "shorter": ((*FLOATS, "ids", "lists"), lambda array, _: array[:-1].copy()),
    "no columns": (("w", "log_w", "ids", "s", "lists"), lambda array, _: array[:, :0].copy()),
    "flat": ((*FLOATS, "ids", "lists"), lambda array, _: array[None].copy()),
    "float64": (FLOATS, lambda array, _: array.astype(np.float64)),
    "int64": (("ids", "lists"), lambda array, _: array.astype(np.int64)),
    "missing": ((*FLOATS, "ids", "lists"), lambda array, _: None),
}


@pytest.fixture(scope="module")
def sound_state(tmp_path_factory: pytest.TempPathFactory, digits: tuple[Any, Any]) -> tuple[Path, bytes]:
    folder = tmp_path_factory.mktemp("sound")
    mixture(folder, n_components=600, max_iter=2).fit(digits[0])
    return folder, (folder / "mixture-1.state").read_bytes()


@pytest.mark.parametrize(
    ("name", "damage"), [(name, damage) for damage, (names, _) in DAMAGES.items() for name in names]
)
@given(place=st.integers(0, 2**31))
@settings(max_examples=settings.default.max_examples // 20)
def test_damaged_arrays_are_refused(
    digits: tuple[Any, Any], sound_state: tuple[Path, bytes], name: str, damage: str, place: int
) -> None:
    folder, whole = sound_state
    path, arrays = folder / "mixture-1.state", load(whole)
    changed = DAMAGES[damage][1](arrays.pop(name), place)
    metadata = json.loads(whole[8 : 8 + int.from_bytes(whole[:8], "little")])["__metadata__"]
    save_file(arrays if changed is None else arrays | {name: changed}, path, metadata)
    with pytest.raises(CheckpointError, match=r"is damaged or not a checkpoint.*start over"):
        mixture(folder, n_components=600, max_iter=4, resume=True).fit(digits[0])


@given(name=st.sampled_from([*FLOATS, "ids", "lists"]), place=st.integers(0, 2**31), bit=st.integers(0, 31))
def test_no_flipped_bit_goes_unnoticed(
    digits: tuple[Any, Any], sound_state: tuple[Path, bytes], name: str, place: int, bit: int
) -> None:
    folder, whole = sound_state
    path, arrays = folder / "mixture-1.state", load(whole)
    arrays[name].reshape(-1).view(np.uint32)[place % arrays[name].size] ^= np.uint32(1 << bit)
    metadata = json.loads(whole[8 : 8 + int.from_bytes(whole[:8], "little")])["__metadata__"]
    save_file(arrays, path, metadata)
    with pytest.raises(CheckpointError, match="the checksum does not match"):
        mixture(folder, n_components=600, max_iter=3, resume=True).fit(digits[0])


@pytest.mark.parametrize("entry", ["objective", "gain", "age", "free_energy"])
@pytest.mark.parametrize("number", ["NaN", "Infinity", "null", f"1{'0' * 400}"])
def test_damaged_numbers_are_refused(
    digits: tuple[Any, Any], sound_state: tuple[Path, bytes], entry: str, number: str
) -> None:
    folder, whole = sound_state
    metadata = json.loads(whole[8 : 8 + int.from_bytes(whole[:8], "little")])["__metadata__"]
    text, n = re.subn(rf'"{entry}": [^,}}]+', f'"{entry}": {number}', metadata["tnesi checkpoint"])
    assert n > 0
    save_file(load(whole), folder / "mixture-1.state", {"tnesi checkpoint": text})
    with pytest.raises(CheckpointError, match="start over"):
        mixture(folder, n_components=600, max_iter=4, resume=True).fit(digits[0])


def test_what_cannot_be_stored_is_reported(digits: tuple[Any, Any], tmp_path: Path) -> None:
    X, y = digits
    with pytest.raises(InvalidParameterError, match="checkpoint needs EM with a truncation: pass a truncation"):
        mixture(tmp_path, n_components=600, truncation=None).fit(X)
    for changes in ({"rule": OnlineRule()}, {"rule": EM()}, {"rule": EM(), "recurrent": True}):
        with pytest.raises(InvalidParameterError, match="without checkpoints"):
            NeuralSimpletron(60, execution=Local(checkpoint=tmp_path), **changes).fit(X, y)
    with pytest.raises(InvalidParameterError, match="resume=True needs the folder"):
        mixture(resume=True).fit(X)


def test_one_fit_at_a_time(digits: tuple[Any, Any], tmp_path: Path) -> None:
    X, _ = digits

    def other(record: dict[str, Any]) -> None:
        with pytest.raises(CheckpointError, match="another fit uses"):
            mixture(tmp_path).fit(X)

    mixture(tmp_path, callback=other, max_iter=1).fit(X)


def test_half_written_files_are_cleared_away(digits: tuple[Any, Any], tmp_path: Path) -> None:
    X, _ = digits
    for name in (".mixture-1.state.abc.part", ".thesis.docx.part", "mixture-2.state"):
        (tmp_path / name).write_bytes(b"half")
    mixture(tmp_path).fit(X)
    kept = [".lock", ".thesis.docx.part", "mixture-1.state", "seeds.json"]  # not ours, and not of an earlier fit
    assert sorted(p.name for p in tmp_path.iterdir()) == kept


def test_a_file_in_place_of_the_folder(digits: tuple[Any, Any], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CheckpointError, match="is a file, not a folder"):
        mixture(tmp_path / "file").fit(digits[0])


def test_an_error_of_the_callback_is_its_own(digits: tuple[Any, Any], tmp_path: Path) -> None:
    def busy(record: dict[str, Any]) -> None:
        raise BlockingIOError("the printer is on fire")

    with pytest.raises(BlockingIOError, match="on fire"):
        mixture(tmp_path, callback=busy).fit(digits[0])


def test_a_full_disk_loses_nothing(digits: tuple[Any, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    X, _ = digits
    save, count = safetensors.numpy.save_file, 0

    def full(*args: Any, **kwargs: Any) -> None:
        nonlocal count
        count += 1
        if count == 4:
            raise OSError(28, "No space left on device")
        save(*args, **kwargs)

    monkeypatch.setattr(safetensors.numpy, "save_file", full)
    with pytest.raises(OSError, match="No space left"):
        mixture(tmp_path).fit(X)
    found = mixture(tmp_path, resume=True).fit(X)
    np.testing.assert_array_equal(found.means_, mixture().fit(X).means_)
