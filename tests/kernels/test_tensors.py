"""The kernels on PyTorch's tensors say what the NumPy reference says, and never mix devices."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.kernels.problems import UNITS, assert_same_activities, outputs, problems

from tnesi.kernels import reference, tensors

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
from tests.kernels.fake_gpu import fake_gpu  # noqa: E402 - only with PyTorch


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Tests that run at the same time would wait for each other's threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def on_tensors(name: str, *arguments: Any) -> None:
    """Call a kernel with tensors that share the memory of the given arrays."""
    given = [torch.from_numpy(signed(one)) if isinstance(one, np.ndarray) else one for one in arguments]
    getattr(tensors, name)(*given, 1)


def signed(array: Any) -> Any:
    """PyTorch computes with signed numbers of 64 bits."""
    return array.view(np.int64) if array.dtype == np.uint64 else array


def on_reference(name: str, *arguments: Any) -> None:
    getattr(reference, name)(*arguments, 1)


@given(problems())
def test_select_top(p: SimpleNamespace) -> None:
    raw = np.ascontiguousarray(p.x.astype(np.float32) @ p.log_w[:, : p.x.shape[1]].T)
    own, expected = outputs(len(p.x), p.width), outputs(len(p.x), p.width)
    on_tensors("select_top", raw, p.scale, p.base, p.base_row, *own)
    reference.select_top(raw, p.scale, p.base, p.base_row, *expected, 1)
    assert_same_activities(own, expected)


@given(problems())
def test_products(p: SimpleNamespace) -> None:
    own, expected = (np.empty((len(p.x), len(p.w)), np.float32) for _ in range(2))
    on_tensors("products", p.x, p.log_w, own)
    reference.products(p.x, p.log_w, expected, 1)
    np.testing.assert_allclose(own, expected, rtol=1e-4, atol=1e-2)


@given(problems())
def test_search_all(p: SimpleNamespace) -> None:
    own, expected = outputs(len(p.x), p.width), outputs(len(p.x), p.width)
    on_tensors("search_all", p.x, p.scale, p.log_w, p.base, p.base_row, *own)
    reference.search_all(p.x, p.scale, p.log_w, p.base, p.base_row, *expected, 1)
    assert_same_activities(own, expected)


@given(problems())
def test_blocks_do_not_matter(p: SimpleNamespace) -> None:
    """Blocks of 16 rows find what one block finds."""
    results = []
    for size in (2**21, 16 * len(p.w)):
        out = outputs(len(p.x), p.width)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(tensors, "_CPU_BLOCK", size)
            on_tensors("search_all", p.x, p.scale, p.log_w, p.base, p.base_row, *out)
        results.append(out)
    assert_same_activities(*results)


@given(problems(), st.sampled_from([0.0, 0.3, 2.0]))
def test_m_step(p: SimpleNamespace, prior_rows: float) -> None:
    results = []
    prior = p.x.mean(axis=0).astype(np.float32) if prior_rows else None
    for call in (on_tensors, on_reference):
        out = (np.empty_like(p.w), np.zeros_like(p.log_w), np.empty(len(p.w), np.float32), np.empty(len(p.w)))
        call("m_step", p.x, p.scale, p.weight, p.ids, p.s, *UNITS, p.w, prior, prior_rows, *out)
        results.append(out)
    for own, expected in zip(*results, strict=True):
        np.testing.assert_allclose(own, expected, rtol=2e-5, atol=2e-5)


@given(problems(), st.integers(0, 40))
def test_statistics_of_parts(p: SimpleNamespace, cut: int) -> None:
    """Parts of the rows can be added in any order: sums are exact in units."""
    results = []
    for parts in ((slice(None),), (slice(cut), slice(cut, None)), (slice(cut, None), slice(cut))):
        sums, mass = np.zeros(p.w.shape), np.zeros(len(p.w))
        for at in parts:
            weight = None if p.weight is None else p.weight[at]
            on_tensors("add_statistics", p.x[at], p.scale[at], weight, p.ids[at], p.s[at], *UNITS, sums, mass)
        results.append((sums, mass))
    for whole, one, other in zip(*results, strict=True):
        np.testing.assert_array_equal(one, other)
        np.testing.assert_allclose(whole, one, rtol=2e-5, atol=2e-5)


@given(problems(), st.floats(0.001, 0.5))
def test_hebbian_step(p: SimpleNamespace, rate: float) -> None:
    results = []
    for call in (on_tensors, on_reference):
        out = (p.w.copy(), p.log_w.copy(), p.log_w.sum(axis=1), p.w.sum(axis=1))
        call("hebbian_step", p.x, p.scale, p.weight, p.ids, p.s, rate, *out)
        results.append(out)
    for own, expected in zip(*results, strict=True):
        np.testing.assert_allclose(own, expected, rtol=1e-4, atol=1e-4)


@given(problems(), st.integers(0, 2**63))
def test_row_hashes(p: SimpleNamespace, seed: int) -> None:
    own, expected = (np.empty(len(p.x), np.uint64) for _ in range(2))
    on_tensors("row_hashes", p.x, seed, own)
    reference.row_hashes(p.x, seed, expected, 1)
    np.testing.assert_array_equal(own, expected)


@given(problems())
def test_log_factorials(p: SimpleNamespace) -> None:
    own, expected = np.empty(len(p.x)), np.empty(len(p.x))
    on_tensors("log_factorials", p.x, p.scale, own)
    reference.log_factorials(p.x, p.scale, expected, 1)
    np.testing.assert_allclose(own, expected, rtol=1e-5, atol=1e-4)


def arguments_on(device: str, other: str | None = None, at: int = -1) -> dict[str, list[Any]]:
    """Return arguments of all kernels as tensors on a device; that of number `at` is on the `other` device."""
    n, d, c, width = 40, 7, 30, 5
    count = iter(range(1000))

    def of(dtype: Any, *shape: int) -> Any:
        return torch.zeros(shape, dtype=dtype, device=other if next(count) == at else device)

    def rows() -> list[Any]:
        return [of(torch.uint8, n, d), of(torch.float32, n)]

    def found() -> list[Any]:
        return [of(torch.int32, n, width), of(torch.float32, n, width)]

    def fields() -> list[Any]:
        return [of(torch.float32, c, d), of(torch.float32, c, 16), of(torch.float32, c)]

    def base() -> list[Any]:
        return [of(torch.float32, 2, c), of(torch.int32, n)]

    def sums() -> list[Any]:
        return [of(torch.float64, c, d), of(torch.float64, c)]

    log_sum, weight = (lambda: of(torch.float32, n)), (lambda: of(torch.float32, n))
    return {
        "select_top": [of(torch.float32, n, c), of(torch.float32, n), *base(), *found(), log_sum()],
        "products": [of(torch.uint8, n, d), of(torch.float32, c, 16), of(torch.float32, n, c)],
        "search_all": [*rows(), of(torch.float32, c, 16), *base(), *found(), log_sum()],
        "add_statistics": [*rows(), weight(), *found(), 0.1, 0.1, *sums()],
        "finish_m_step": [*sums(), of(torch.float32, c, d), of(torch.float32, d), 1.0, *fields()],
        "hebbian_step": [*rows(), weight(), *found(), 0.1, *fields(), of(torch.float32, c)],
        "log_factorials": [*rows(), of(torch.float64, n)],
        "row_hashes": [of(torch.uint8, n, d), 3, of(torch.int64, n)],
    }


def test_kernels_stay_on_their_device() -> None:
    with fake_gpu():
        for name, arguments in arguments_on("cuda").items():
            getattr(tensors, name)(*arguments, 1)


def test_mixed_devices_are_errors() -> None:
    """Each argument in turn is on the processor instead of the GPU: the test above would notice."""
    n_arguments = sum(isinstance(one, torch.Tensor) for given in arguments_on("cpu").values() for one in given)
    with fake_gpu():
        for at in range(n_arguments):
            given = arguments_on("cuda", "cpu", at)
            name = next(name for name, each in given.items() if any(map(is_on_cpu, each)))
            with pytest.raises((RuntimeError, AssertionError), match=r"device|CUDA"):
                getattr(tensors, name)(*given[name], 1)


def is_on_cpu(argument: Any) -> bool:
    return isinstance(argument, torch.Tensor) and argument.device.type == "cpu"
