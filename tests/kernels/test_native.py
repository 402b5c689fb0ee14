"""The native kernels agree with the NumPy reference, on every instruction set and with any number of threads."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array
from tests.kernels.problems import UNITS, assert_same_activities, outputs, problems, sparse_parts

from tnesi import kernels
from tnesi.kernels import reference

if not kernels.NATIVE:
    if not kernels.FORCED:
        pytest.fail("the native kernels are not installed: is there a C++ compiler?", pytrace=False)
    pytest.skip("the NumPy kernels are in use", allow_module_level=True)

from tnesi.kernels import _native  # type: ignore[attr-defined]


@pytest.fixture(params=_native.instruction_sets(), autouse=True)
def instruction_set(request: pytest.FixtureRequest) -> Iterator[str]:
    before = _native.instruction_set()
    _native.use_instruction_set(request.param)
    yield request.param
    _native.use_instruction_set(before)


@given(problems())
def test_select_top(p: SimpleNamespace) -> None:
    raw = np.ascontiguousarray(p.x.astype(np.float32) @ p.log_w[:, : p.x.shape[1]].T)
    results = []
    for kernel, threads in ((_native, 1), (_native, 3), (reference, 1)):
        out = outputs(len(p.x), p.width)
        kernel.select_top(raw, p.scale, p.base, p.base_row, *out, threads)
        results.append(out)
    for one, three in zip(results[0], results[1], strict=True):
        np.testing.assert_array_equal(one, three)
    assert_same_activities(results[0], results[2])


@given(problems())
def test_products(p: SimpleNamespace) -> None:
    one, three, expected = (np.empty((len(p.x), len(p.w)), np.float32) for _ in range(3))
    _native.products(p.given(), p.log_w, one, 1)
    _native.products(p.given(), p.log_w, three, 3)
    reference.products(p.x, p.log_w, expected, 1)
    np.testing.assert_array_equal(one, three)
    np.testing.assert_allclose(one, expected, rtol=1e-4, atol=1e-2)


@given(problems(), st.integers(1, 5), st.integers(1, 40))
def test_search_groups(p: SimpleNamespace, n_groups: int, g: int) -> None:
    lists = p.rng.integers(-1, len(p.w), (n_groups, g)).astype(np.int32)
    group = p.rng.integers(0, n_groups, len(p.x)).astype(np.int32)
    results = []
    for kernel, threads in ((_native, 1), (_native, 3), (reference, 1)):
        out = outputs(len(p.x), p.width, p.ids)
        kernel.search_groups(p.given(), p.scale, p.log_w, p.base, p.base_row, group, lists, *out, threads)
        results.append(out)
    for one, three in zip(results[0], results[1], strict=True):
        np.testing.assert_array_equal(one, three)
    assert_same_activities(results[0], results[2])


@given(problems())
def test_a_score_does_not_depend_on_the_company(p: SimpleNamespace) -> None:
    """A point gets the same bits alone as among others."""
    everything = np.arange(len(p.w), dtype=np.int32)[None]
    together, alone = outputs(len(p.x), p.width), outputs(len(p.x), p.width)
    arguments = (p.scale, p.log_w, p.base[:1], None)
    _native.search_groups(p.given(), *arguments, np.zeros(len(p.x), np.int32), everything, *together, 2)
    for n in range(len(p.x)):
        one = slice(n, n + 1)
        part = [a[one] for a in alone]
        _native.search_groups(p.given(one), p.scale[one], *arguments[1:], np.zeros(1, np.int32), everything, *part, 1)
    for a, b in zip(together, alone, strict=True):
        np.testing.assert_array_equal(a, b)


@given(problems())
def test_search_all(p: SimpleNamespace) -> None:
    results = []
    for kernel, threads in ((_native, 1), (_native, 3), (reference, 1)):
        out = outputs(len(p.x), p.width)
        kernel.search_all(sparse_parts(p.x), p.scale, p.log_w, p.base, p.base_row, *out, threads)
        results.append(out)
    alone = outputs(len(p.x), p.width)
    for n in range(len(p.x)):
        one = slice(n, n + 1)
        base_row = None if p.base_row is None else p.base_row[one]
        part = [a[one] for a in alone]
        _native.search_all(sparse_parts(p.x[one]), p.scale[one], p.log_w, p.base, base_row, *part, 1)
    for first, three, by_itself in zip(results[0], results[1], alone, strict=True):
        np.testing.assert_array_equal(first, three)
        np.testing.assert_array_equal(first, by_itself)
    assert_same_activities(results[0], results[2])


@pytest.mark.parametrize("n_rows", [3, 3000])
def test_wide_rows(n_rows: int) -> None:
    """Few rows use few columns; many fields do not fit into the scratch space together."""
    rng = np.random.default_rng(0)
    d, c, width = 40_000, 300, 7
    column = rng.integers(0, d // 3, (n_rows, 30))
    x = csr_array((rng.integers(1, 5, column.size), (np.repeat(np.arange(n_rows), 30), column.ravel())), (n_rows, d))
    x = csr_array(x, dtype=np.float32)
    parts = x.indptr.astype(np.int64), x.indices.astype(np.int32), x.data
    log_w = np.zeros((c, kernels.padded(d)), np.float32)
    log_w[:, :d] = rng.random((c, d))
    scale, base = np.full(n_rows, 0.5, np.float32), rng.random((1, c)).astype(np.float32)
    out, raw = outputs(n_rows, width), np.empty((n_rows, c), np.float32)
    _native.products(parts, log_w, raw, 2)
    np.testing.assert_allclose(raw, x @ log_w[:, :d].T, rtol=1e-5)
    _native.search_all(parts, scale, log_w, base, None, *out, 2)
    np.testing.assert_array_equal(out[0], np.argsort(-(base + 0.5 * raw), axis=1)[:, :width])


@given(problems(), st.integers(1, 30))
def test_build_lists(p: SimpleNamespace, g: int) -> None:
    one, three, expected = (np.full((len(p.w), g), 7, np.int32) for _ in range(3))
    _native.build_lists(p.ids, one, 1)
    _native.build_lists(p.ids, three, 3)
    reference.build_lists(p.ids, expected, 1)
    np.testing.assert_array_equal(one, three)
    np.testing.assert_array_equal(one, expected)


@given(problems(), st.sampled_from([0.0, 0.3, 2.0]))
def test_m_step(p: SimpleNamespace, prior_rows: float) -> None:
    results = []
    prior = p.x.mean(axis=0).astype(np.float32) if prior_rows else None
    for kernel, threads in ((_native, 1), (_native, 3), (reference, 1)):
        out = (np.empty_like(p.w), np.zeros_like(p.log_w), np.empty(len(p.w), np.float32), np.empty(len(p.w)))
        kernel.m_step(p.given(), p.scale, p.weight, p.ids, p.s, *UNITS, p.w, prior, prior_rows, *out, threads)
        results.append(out)
    for one, three, expected in zip(*results, strict=True):
        np.testing.assert_array_equal(one, three)
        np.testing.assert_allclose(one, expected, rtol=2e-5, atol=2e-5)


@given(problems(), st.lists(st.integers(0, 40), max_size=4), st.randoms(use_true_random=False))
def test_statistics_of_parts(p: SimpleNamespace, cuts: list[int], shuffler: random.Random) -> None:
    """Parts of the rows can be added in any order, or by themselves first; one part is the whole."""
    ends = sorted({min(cut, len(p.x)) for cut in cuts} | {0, len(p.x)})
    parts = [slice(*pair) for pair in itertools.pairwise(ends)]

    def statistics(kernel: Any, parts: list[slice], threads: int) -> tuple[Any, Any]:
        sums, mass = np.zeros(p.w.shape), np.zeros(len(p.w))
        for at in parts:
            weight = None if p.weight is None else p.weight[at]
            kernel.add_statistics(p.given(at), p.scale[at], weight, p.ids[at], p.s[at], *UNITS, sums, mass, threads)
        return sums, mass

    def finished(sums: Any, mass: Any) -> tuple[Any, ...]:
        out = (np.empty_like(p.w), np.zeros_like(p.log_w), np.empty(len(p.w), np.float32))
        _native.finish_m_step(sums, mass, p.w, None, 0.0, *out, 2)
        return out

    in_order = statistics(_native, parts, 1)
    shuffled = shuffler.sample(parts, len(parts))
    alone = [statistics(_native, [part], 2) for part in shuffled]
    for other in (statistics(_native, shuffled, 3), [sum(one) for one in zip(*alone, strict=True)]):
        np.testing.assert_array_equal(in_order[0], other[0])
        np.testing.assert_array_equal(in_order[1], other[1])
    for one, expected in zip(in_order, statistics(reference, parts, 1), strict=True):
        np.testing.assert_allclose(one, expected, rtol=2e-5, atol=2e-5)
    whole = (np.empty_like(p.w), np.zeros_like(p.log_w), np.empty(len(p.w), np.float32))
    mass = np.empty(len(p.w))
    _native.m_step(p.given(), p.scale, p.weight, p.ids, p.s, *UNITS, p.w, None, 0.0, *whole, mass, 1)
    for one, expected in zip(finished(*statistics(_native, [slice(None)], 1)), whole, strict=True):
        np.testing.assert_array_equal(one, expected)


@given(problems(), st.floats(0.001, 0.5))
def test_hebbian_step(p: SimpleNamespace, rate: float) -> None:
    results = []
    for kernel, threads in ((_native, 1), (_native, 3), (reference, 1)):
        out = (p.w.copy(), p.log_w.copy(), p.log_w.sum(axis=1), p.w.sum(axis=1))
        kernel.hebbian_step(p.given(), p.scale, p.weight, p.ids, p.s, rate, *out, threads)
        results.append(out)
    for one, three, expected in zip(*results, strict=True):
        np.testing.assert_array_equal(one, three)
        np.testing.assert_allclose(one, expected, rtol=1e-4, atol=1e-4)


@given(problems(), st.floats(0.001, 0.5), st.integers(1, 50), st.integers(0, 12), st.integers(0, 3))
def test_learn_online(p: SimpleNamespace, rate: float, batch: int, g: int, n_extra: int) -> None:
    """Mini-batches with partial E-steps; the second and later ones see what the first changed."""
    n, c = len(p.x), len(p.w)
    order = p.rng.permutation(n)[: p.rng.integers(1, n + 1)]
    lists = p.rng.integers(-1, c, (c, g)).astype(np.int32)
    extra = p.rng.integers(-1, c, (order.size, n_extra)).astype(np.int32)
    row_sum = float(p.x.shape[1] + 5)
    results = []
    for kernel, threads in ((_native, 1), (_native, 3), (reference, 1)):
        fields = (p.w.copy(), p.log_w.copy(), p.log_w.sum(axis=1), p.w.sum(axis=1))
        found = (*outputs(n, p.width, p.ids), np.full(n, np.nan, np.float32))
        arguments = (p.given(), p.scale, p.weight, order, batch, rate, row_sum, lists, extra)
        kernel.learn_online(*arguments, *fields, *found, threads)
        results.append((fields, found))
    for one, three in zip(sum(results[0], ()), sum(results[1], ()), strict=True):
        np.testing.assert_array_equal(one, three)
    rest = np.setdiff1d(np.arange(n), order)
    assert np.isnan(results[0][1][1][rest]).all()  # rows that are not in the order are left alone
    np.testing.assert_array_equal(results[0][1][0][rest], p.ids[rest])
    for one, expected in zip(results[0][0], results[2][0], strict=True):
        np.testing.assert_allclose(one, expected, rtol=2e-3, atol=2e-3)
    parts = [tuple(a[order] for a in found) for _, found in (results[0], results[2])]
    assert_same_activities(parts[0][:3], parts[1][:3])
    np.testing.assert_allclose(parts[0][3], parts[1][3], rtol=2e-5, atol=2e-3)


def test_learn_online_rejects_rows_named_twice() -> None:
    """Two threads would learn them at once."""
    x, one = np.ones((3, 2), np.uint8), np.ones(3, np.float32)
    fields = (np.ones((1, 2), np.float32), np.zeros((1, 16), np.float32), np.zeros(1, np.float32), one[:1].copy())
    lists, extra = np.zeros((1, 1), np.int32), np.zeros((2, 0), np.int32)
    with pytest.raises(ValueError, match="order names points once"):
        _native.learn_online(
            x, one, None, np.array([1, 1]), 25, 0.1, 4.0, lists, extra, *fields, *outputs(3, 1), one.copy(), 1
        )


@st.composite
def class_sizes(draw: st.DrawFn) -> tuple[int, Any]:
    """A number of classes and their sizes: None, or anything from zero to very different sizes."""
    n_classes = draw(st.integers(2, 40))
    size = st.just(0.0) | st.floats(0.001, 100)
    sizes = draw(st.none() | st.lists(size, min_size=n_classes, max_size=n_classes))
    return n_classes, None if sizes is None else np.array(sizes, np.float32)


@given(problems(), class_sizes(), st.integers(1, 9), st.floats(0.01, 1.0), st.booleans())
def test_learn_classes(p: SimpleNamespace, classes: tuple[int, Any], batch: int, rate: float, self_label: bool) -> None:
    n_classes, sizes = classes
    n, c = len(p.x), len(p.w)
    real = p.ids >= 0
    indptr = np.concatenate([[0], np.cumsum(real.sum(axis=1))]).astype(np.int64)
    label = p.rng.integers(-1, n_classes, n).astype(np.int32)
    r = np.zeros((c, kernels.padded(n_classes)), np.float32)
    r[:, :n_classes] = p.rng.dirichlet(np.ones(c), n_classes).T * (p.rng.random((c, 1)) < 0.9)
    order = p.rng.permutation(n)
    results = []
    for kernel, threads in ((_native, 1), (_native, 2), (reference, 1)):
        now, taught = r.copy(), np.full(n, -9, np.int32)
        kernel.learn_classes(
            indptr,
            p.ids[real],
            p.s[real],
            label,
            p.weight,
            order,
            batch,
            rate,
            0.3,
            self_label,
            sizes,
            now,
            n_classes,
            taught,
            threads,
        )
        results.append((now, taught))
    for one, two, expected in zip(*results, strict=True):
        np.testing.assert_array_equal(one, two)
        np.testing.assert_allclose(one, expected, atol=1e-5)


@pytest.mark.parametrize("kernel", [_native, reference])
@pytest.mark.parametrize("n", [3, 5, 11, 49])  # 1 - n * (1 / n) is not 0 for 49
def test_learn_classes_forgets_all_in_a_full_step(kernel: Any, n: int) -> None:
    """Fields that a step to the mean of the batch does not reach get exactly zero, not a rounding error."""
    indptr, indices = np.arange(n + 1, dtype=np.int64), np.zeros(n, np.int32)
    r, taught = np.zeros((2, kernels.padded(2)), np.float32), np.empty(n, np.int32)
    r[1, :2] = 1  # field 1 belongs to both classes, and all rows have field 0
    label, order = np.zeros(n, np.int32), np.arange(n)
    rows = (indptr, indices, np.ones(n, np.float32), label, None, order, n)
    kernel.learn_classes(*rows, 1 / n, 0.5, False, None, r, 2, taught, 1)
    np.testing.assert_allclose(r[0, :2], [1, 0], rtol=1e-6)
    assert r[1, :2].tolist() == [0, 1]


@given(problems(), st.sampled_from([16, 32, 48, 112]), st.integers(1, 3), st.integers(1, 40))
def test_spread(p: SimpleNamespace, k_padded: int, n: int, n_terms: int) -> None:
    c = len(p.w)
    part = p.rng.random((2 * c, c)) * (p.rng.random((2 * c, c)) < 0.3)
    product = part.T @ part
    graph = csr_array((product / max(np.linalg.norm(product, 2), 1)).astype(np.float32))  # eigenvalues in [0, 1]
    matrix = (graph.indptr.astype(np.int64), graph.indices.astype(np.int32), graph.data)
    source = p.rng.normal(0, 1, (c, k_padded)).astype(np.float32)
    coefficients = (p.rng.normal(0, 1, (n, n_terms)) * (p.rng.random((n, n_terms)) < 0.8)).astype(np.float32)
    one, three, expected = (np.full((n, c, k_padded), np.nan, np.float32) for _ in range(3))
    _native.spread(*matrix, source, coefficients, one, 1)
    _native.spread(*matrix, source, coefficients, three, 3)
    reference.spread(*matrix, source, coefficients, expected, 1)
    np.testing.assert_array_equal(one, three)
    np.testing.assert_allclose(one, expected, rtol=1e-4, atol=1e-4 * max(np.abs(expected).max(), 1))


@given(problems(), st.integers(0, 2**63))
def test_row_hashes(p: SimpleNamespace, seed: int) -> None:
    native, expected = np.empty(len(p.x), np.uint64), np.empty(len(p.x), np.uint64)
    _native.row_hashes(p.given(), seed, native, 2)
    for x in (p.x, p.x.astype(np.float32), sparse_parts(p.x)):
        reference.row_hashes(x, seed, expected, 1)
        np.testing.assert_array_equal(native, expected)


@given(st.integers(0, 2**32))
def test_hashes_of_any_numbers(seed: int) -> None:
    """Dense or sparse, native or not; negligible values count as absent."""
    rng = np.random.default_rng(seed)
    x = (10.0 ** rng.uniform(-30, 20, (20, 30)) * (rng.random((20, 30)) < 0.3)).astype(np.float32)
    hashes = np.empty((4, 20), np.uint64)
    for i, (kernel, rows) in enumerate(itertools.product((_native, reference), (x, sparse_parts(x)))):
        kernel.row_hashes(rows, 1, hashes[i], 1)
    assert (hashes == hashes[0]).all()


@given(problems())
def test_log_factorials(p: SimpleNamespace) -> None:
    native, expected = np.empty(len(p.x)), np.empty(len(p.x))
    _native.log_factorials(p.given(), p.scale, native, 2)
    reference.log_factorials(p.x, p.scale, expected, 1)
    np.testing.assert_allclose(native, expected, rtol=1e-5, atol=1e-4)


def test_arguments_are_checked() -> None:
    x, scale = np.ones((3, 4), np.float32), np.ones(3, np.float32)
    with pytest.raises(ValueError, match="a value for each row"):
        _native.log_factorials(x, scale, np.empty(2), 1)
    with pytest.raises(TypeError):
        _native.log_factorials(x.astype(np.float64), scale, np.empty(3), 1)
    with pytest.raises(TypeError):
        _native.log_factorials(np.asfortranarray(x), scale, np.empty(3), 1)
    with pytest.raises(ValueError, match="no such instruction set"):
        _native.use_instruction_set("abacus")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"indptr": np.array([0, 1], np.int64)}, "indptr for each row"),
        ({"indptr": np.array([0, 2, 1], np.int64)}, "indptr spans the values"),
        ({"indptr": np.array([0, -1, 2], np.int64)}, "indptr ascends"),
        ({"values": np.ones(3, np.float32)}, "an index for each value"),
        ({"indices": np.array([0, 2], np.int32)}, "indices name columns"),
        ({"out": np.ones((1, 2, 32), np.float32)}, "out like source"),
        ({"coefficients": np.ones((2, 3), np.float32)}, "out like source, for each row of coefficients"),
        ({"coefficients": np.ones((1, 0), np.float32)}, "at least one term"),
        ({"source": np.ones((2, 8), np.float32), "out": np.ones((1, 2, 8), np.float32)}, "multiple of 16"),
    ],
)
def test_spread_checks_its_arguments(change: dict[str, Any], message: str) -> None:
    fitting = {
        "indptr": np.array([0, 1, 2], np.int64),
        "indices": np.array([0, 1], np.int32),
        "values": np.ones(2, np.float32),
    }
    fitting |= {"source": np.ones((2, 16), np.float32), "coefficients": np.ones((1, 3), np.float32)}
    fitting |= {"out": np.ones((1, 2, 16), np.float32), "n_threads": 1}
    _native.spread(**fitting)
    with pytest.raises(ValueError, match=message):
        _native.spread(**(fitting | change))


def test_sparse_rows_are_checked() -> None:
    indptr, indices, values = sparse_parts(np.eye(3))
    scale, log_w, out = np.ones(3, np.float32), np.ones((2, 16), np.float32), np.ones((3, 2), np.float32)
    _native.products((indptr, indices, values), log_w, out, 1)
    with pytest.raises(ValueError, match="indices name columns"):
        _native.products((indptr, indices + np.int32(14), values), log_w, out, 1)
    with pytest.raises(ValueError, match="indptr spans the values"):
        _native.products((indptr[:3], indices, values), log_w, out[:2], 1)
    with pytest.raises(ValueError, match="indptr of at least one number"):
        _native.products((indptr[:0], indices[:0], values[:0]), log_w, out[:0], 1)
    with pytest.raises(ValueError, match="one scale for each row"):
        _native.log_factorials((indptr, indices, values), scale[:2], np.empty(3), 1)
    for wrong in ((indptr.astype(np.int32), indices, values), (indptr, indices, values.astype(np.float64))):
        with pytest.raises(TypeError):
            _native.log_factorials(wrong, scale, np.empty(3), 1)


@pytest.mark.parametrize("sizes", [[1.0], [1.0, -1.0], [1.0, np.nan]])
def test_sizes_are_checked(sizes: list[float]) -> None:
    point, r = np.zeros(1, np.int32), np.ones((1, 16), np.float32)
    rows = (np.array([0, 1], np.int64), point, np.ones(1, np.float32))
    with pytest.raises(ValueError, match="size"):
        _native.learn_classes(
            *rows, point, None, np.zeros(1, np.int64), 1, 0.1, 0.1, True, np.array(sizes, np.float32), r, 2, point, 1
        )
