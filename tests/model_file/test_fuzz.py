"""Ten thousand mutated model files: each is refused with ModelFileError, or loads as a model that can predict."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors import safe_open

from tnesi import PoissonMixture, SelfLabeling, SimpletronClassifier, load, save
from tnesi.model_file import ModelFileError, read_header
from tnesi.model_file.header import MEMBER_NAMES
from tnesi.paper import EM, NeuralSimpletron, OnlineRule

PARTS, FILES_PER_PART = 10, 1000
Arrays = dict[str, Any]
NASTY: list[Any] = [
    None, True, False, -1, 0, 1, 2, 3, 7, 0.5, -0.5, 1e-300, 1e300,
    2**31, 2**32, 2**53 + 1, 2**63 - 1, 2**63, 2**64, -(2**64),
    "", "auto", "self-labeling", "supervised", "spreading", "clusters", "nan", "full", "exact", "neighbors",
    "classifier", "mixture", "network",
    {"PoissonMixture": {}}, {"SelfLabeling": {}}, {"OnlineRule": {}}, {"PoissonMixture": {"n_components": -1}},
    "\ud800", "a" * 999,
    "<i8", "<U1", "<U9", "<U99999999", "<f2", "|b1", "|u1", "|O", ">i8", "<M8[s]",
    [], {}, [1], ["a"], {"a": 1}, {"execution": 1}, [[[[1]]]], [[[[[[[[[[1]]]]]]]]]],
    {"nonfinite": "nan"}, {"nonfinite": "inf"}, {"nonfinite": "-inf"}, {"nonfinite": []}, {"nonfinite": "x"},
]  # fmt: skip
NOT_JSON = [
    "NaN", "-Infinity", "1e999", "-1e999", "9" * 5000, "[" * 100_000, '{"a":' * 50_000, "", "'", '{"a":1,"a":2}', "\0",
]  # fmt: skip


@pytest.fixture(scope="module")
def originals(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("originals")
    rng = np.random.default_rng(0)
    rows, labels = rng.random((24, 6)), [0, 1, 2] * 4 + [-1] * 12
    names = np.array(["a", "b", "cc", "-1"])[labels]

    def mixture(n_components: int, truncation: int | None = 3, search: Any = "neighbors") -> PoissonMixture:
        return PoissonMixture(
            n_components, truncation=truncation, row_sum=20, search=search, max_iter=2, tol=0, random_state=0, n_jobs=1
        )

    sure, rule = SelfLabeling(max_iter=2), OnlineRule(max_iter=2)
    weight = rng.random(24) + 0.1
    models: list[Any] = [
        SimpletronClassifier(mixture(8), labeling=sure).fit(rows, names, sample_weight=weight),
        NeuralSimpletron(
            8, truncation=None, row_sum=20, recurrent=True, rule=EM(max_iter=2, tol=0, label_max_iter=2), n_jobs=1
        ).fit(rows, labels),
        NeuralSimpletron(5, truncation=3, row_sum=20, rule=rule, n_jobs=1).fit(rows, labels),
        mixture(5, search="exact").fit(rows),
        SimpletronClassifier(mixture(6), n_mixtures=3, labeling=sure).fit(rows, labels),
        SimpletronClassifier(mixture(8), labeling="spreading").fit(rows, labels),
        SimpletronClassifier(mixture(6), n_mixtures=2, unknown_classes=2).fit(
            rows, names, sample_weight=np.arange(24) % 5
        ),
        SimpletronClassifier(mixture(8)).fit(rows, [-1] * 24),
        PoissonMixture(514, truncation=5, row_sum=20, max_iter=1, tol=0, n_jobs=1).fit(rng.random((1100, 3))),
    ]
    for i, model in enumerate(models):
        save(model, folder / f"{i}.tnesi", image_shape=(1, model.n_features_in_), provenance={"data": [1, {"a": "b"}]})
    return sorted(folder.iterdir())


def parts_of(path: Path) -> tuple[Any, Arrays]:
    with safe_open(path, framework="np") as file:
        return json.loads(file.metadata()["tnesi"]), {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118


# Mutations of the bytes


def flip(data: bytes, other: bytes, rng: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.choice([1, 1, 2, 8, 64])):
        changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def flip_in_header(data: bytes, other: bytes, rng: random.Random) -> bytes:
    changed, end = bytearray(data), 8 + int.from_bytes(data[:8], "little")
    for _ in range(rng.choice([1, 1, 2, 4])):
        changed[rng.randrange(end)] = rng.choice(b'0123456789-.eE"\\{}[],: ntful\x00\xff')
    return bytes(changed)


def truncate(data: bytes, other: bytes, rng: random.Random) -> bytes:
    return data[: rng.randrange(len(data))]


def insert(data: bytes, other: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(data))
    return data[:at] + rng.randbytes(rng.choice([1, 4, 100])) + data[at:]


def splice(data: bytes, other: bytes, rng: random.Random) -> bytes:
    return data[: rng.randrange(len(data))] + other[rng.randrange(len(other)) :]


# Mutations of the content of a valid container


def entries(value: Any) -> list[tuple[Any, Any]]:
    """All places in a JSON value, as (container, key)."""
    places = [*value] if isinstance(value, dict) else [*range(len(value))] if isinstance(value, list) else []
    return [place for key in places for place in ((value, key), *entries(value[key]))]


def change_entry(header: Any, arrays: Arrays, rng: random.Random) -> str:
    for _ in range(rng.choice([1, 1, 1, 2])):
        container, key = rng.choice(entries(header))
        container[key] = deepcopy(rng.choice(NASTY))  # the next change may be within
    return json.dumps(header)


def drop_or_add_entry(header: Any, arrays: Arrays, rng: random.Random) -> str:
    container, key = rng.choice(entries(header))
    if rng.random() < 0.5:
        del container[key]
    elif isinstance(container, dict):
        container[rng.choice(["x", "execution", "format", "unlabeled", "nonfinite"])] = rng.choice(NASTY)
    else:
        container.insert(key, rng.choice([*NASTY, container[key]]))
    return json.dumps(header)


def swap_entries(header: Any, arrays: Arrays, rng: random.Random) -> str:
    (a, i), (b, j) = rng.sample(entries(header), 2)
    try:
        a[i], b[j] = b[j], a[i]
        return json.dumps(header)
    except (ValueError, LookupError, TypeError):  # one was inside the other
        return "{}"


def break_json(header: Any, arrays: Arrays, rng: random.Random) -> str:
    container, key = rng.choice(entries(header))
    container[key] = "PLACE"
    return json.dumps(header).replace('"PLACE"', rng.choice(NOT_JSON))


def change_values(header: Any, arrays: Arrays, rng: random.Random) -> str:
    array = arrays[rng.choice([*arrays])].reshape(-1)
    nasty = [-(2**31), -2, -1, 0, 1, array.size, 600, 2**31 - 1]
    if array.dtype.kind == "f":
        nasty = [np.nan, np.inf, -np.inf, -1, 0, 0.5, 1, 1.5, 1e-40, 3e38]
    for _ in range(rng.choice([1, 1, 3, array.size])):
        array[rng.randrange(array.size)] = rng.choice(nasty)
    return json.dumps(header)


def change_shapes(header: Any, arrays: Arrays, rng: random.Random) -> str:
    name = rng.choice([*arrays])
    array = arrays[name]
    arrays[name] = rng.choice(
        [
            array.T.copy(),
            array[:-1],
            array[:, None],
            array.reshape(-1),
            np.concatenate([array, array]),
            array[:0],
            array[0],
        ]
        + ([array[:, :-1].copy(), array[:, ::-1].copy(), array[::-1].copy()] if array.ndim == 2 else [])
    )
    return json.dumps(header)


def change_types(header: Any, arrays: Arrays, rng: random.Random) -> str:
    name = rng.choice([*arrays])
    kind = rng.choice([np.float64, np.float16, np.int8, np.int64, np.uint32, np.bool_, np.complex64])
    arrays[name] = arrays[name].astype(kind)
    return json.dumps(header)


def exchange_arrays(header: Any, arrays: Arrays, rng: random.Random) -> str:
    a, b = rng.choices([*arrays, "other"], k=2)
    taken = {a: arrays.pop(b, None), b: arrays.pop(a, None)}
    arrays |= {name: array for name, array in taken.items() if array is not None}
    return json.dumps(header)


def cut_all_alike(header: Any, arrays: Arrays, rng: random.Random) -> str:
    """A smaller model, which may be valid."""
    names = [name for name in arrays if name.partition(".")[0] in ("weights", "weight_sums", "lists")]
    mixtures = sum(name.startswith("weights") for name in names)
    n = rng.randrange(1, len(arrays["weights"]) + 1)
    arrays |= {name: arrays[name][:n] for name in names}
    if "class_weights" in arrays:
        arrays["class_weights"] = arrays["class_weights"][:, : mixtures * n].copy()
    return json.dumps(header)


def change_classes(header: Any, arrays: Arrays, rng: random.Random) -> str:
    """Other sizes and another sharpness, with or without an unknown class."""
    header["sharpness"] = rng.choice([0.5, 3, 1e9, *NASTY])
    header["labeling"] = rng.choice(["spreading", "", *NASTY])
    header["unknown"] = rng.choice([True, False])
    n = rng.choice([2, 3, 4, len(header["classes"] or ())])
    sizes = np.array([rng.random() for _ in range(n)])
    arrays["class_sizes"] = sizes / rng.choice([sizes.sum(), 1])
    return json.dumps(header)


def change_members(header: Any, arrays: Arrays, rng: random.Random) -> str:
    """One mixture more or fewer, whose arrays may or may not match."""
    first = {name: header[name] for name in MEMBER_NAMES}
    members = header["further_mixtures"]
    header["further_mixtures"] = rng.choice([members[:-1], [*members, first], [first], members * 2])
    n = rng.choice([len(members), len(header["further_mixtures"])])
    for name in [name for name in arrays if "." in name]:
        del arrays[name]
    for m in range(1, n + 1):
        arrays |= {f"{name}.{m}": arrays[name] for name in ("weights", "weight_sums")}
    if "class_weights" in arrays:
        shape = len(arrays["class_weights"]), (1 + n) * len(arrays["weights"])
        arrays["class_weights"] = np.resize(arrays["class_weights"], shape)
    return json.dumps(header)


OF_BYTES: list[Callable[[bytes, bytes, random.Random], bytes]] = [flip, flip_in_header, truncate, insert, splice]
OF_CONTENT: list[Callable[[Any, Arrays, random.Random], str]] = [
    change_entry, change_entry, change_entry, drop_or_add_entry, swap_entries, break_json,
    change_values, change_values, change_shapes, change_types, exchange_arrays, cut_all_alike, change_members,
    change_classes,
]  # fmt: skip


def mutate(originals: list[Path], rng: random.Random, path: Path, write_model: Any) -> str:
    """Write a mutated file, return the name of the mutation."""
    original = rng.choices(originals, [4, 4, 4, 4, 4, 4, 4, 4, 1])[0]
    if rng.random() < 0.4:
        of_bytes = rng.choice(OF_BYTES)
        path.write_bytes(of_bytes(original.read_bytes(), rng.choice(originals).read_bytes(), rng))
        return of_bytes.__name__
    of_content = rng.choice(OF_CONTENT)
    header, arrays = parts_of(original)
    text = of_content(header, arrays, rng)
    write_model(path, text, arrays)
    return of_content.__name__


def loads(path: Path) -> bool:
    """Return whether the file loads. If so, it must predict; otherwise it must raise ModelFileError."""
    try:
        model = load(path)
    except ModelFileError as error:
        if str(path) not in str(error):
            raise AssertionError("the error does not say which file it is about") from error
        return False
    read_header(path)
    rows = np.random.default_rng(0).random((3, model.n_features_in_))
    if isinstance(model, NeuralSimpletron) and not model.classes_.size:
        assert np.isfinite(model.mixture_.transform(rows).data).all()
    elif isinstance(model, SimpletronClassifier) and not model.classes_.size:
        assert all(0 <= suggestion.row < model.activities_.shape[0] for suggestion in model.suggest(2))
        assert np.isfinite(model.mixture_.transform(rows).data).all()
    elif isinstance(model, SimpletronClassifier | NeuralSimpletron):
        assert np.isfinite(model.predict_proba(rows)).all()
        assert np.isin(model.predict(rows), model.classes_).all()
    else:
        assert np.isfinite(model.transform(rows).data).all()
        assert (model.predict(rows) < model.n_components_).all()
    return True


@pytest.mark.parametrize("part", range(PARTS))
def test_mutated_files_are_refused_or_work(part: int, originals: list[Path], tmp_path: Path, write_model: Any) -> None:
    rng, path, n_loaded = random.Random(part), tmp_path / "mutated.tnesi", 0
    for i in range(FILES_PER_PART):
        mutation = mutate(originals, rng, path, write_model)
        try:
            n_loaded += loads(path)
        except Exception as error:
            raise AssertionError(f"file {i} of part {part}, {mutation}: {error!r}") from error
    assert FILES_PER_PART / 20 < n_loaded < FILES_PER_PART / 2  # otherwise the mutations are too strong or too weak
