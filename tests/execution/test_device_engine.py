"""Learning and predicting on a device of PyTorch, as far as its CPU device and a fake GPU can show it."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone

from tnesi import PoissonMixture, SimpletronClassifier, load, save
from tnesi.errors import InvalidDataError, InvalidParameterError
from tnesi.estimators import reading
from tnesi.execution import Local, Torch
from tnesi.execution.device_engine import DeviceEngine
from tnesi.execution.store import ArrayStore, TensorStore
from tnesi.kernels import tensors
from tnesi.model.device_fields import DeviceFields
from tnesi.model.fields import Fields, Prior, Shrinkage
from tnesi.model.rows import normalize
from tnesi.paper import EM, NeuralSimpletron, OnlineRule
from tnesi.search import DeviceSearch, ExactSearch
from tnesi.system.devices import Device, DeviceError, DeviceMemoryError, find_device

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
from tests.kernels.fake_gpu import FakeDevice, fake_gpu  # noqa: E402 - only with PyTorch

CPU = Torch("cpu", deterministic=True)


@pytest.fixture
def rows() -> Any:
    """Noisy copies of 40 patterns."""
    rng = np.random.default_rng(0)
    patterns = rng.gamma(0.5, 40.0, (40, 30))
    return rng.poisson(patterns[rng.integers(0, 40, 600)]).clip(0, 255).astype(np.uint8)


def mixture(execution: Local | None = CPU, **parameters: Any) -> PoissonMixture:
    given = {"n_components": 30, "row_sum": 150.0, "max_iter": 6, "tol": 0.0, "random_state": 0, "n_jobs": 1}
    return PoissonMixture(**given | parameters, execution=execution)


def assert_close(one: PoissonMixture, other: PoissonMixture) -> None:
    """Equal up to rounding."""
    np.testing.assert_allclose(one.means_, other.means_, rtol=1e-3, atol=1e-3)
    energies = [[record["free_energy"] for record in each.history_] for each in (one, other)]
    np.testing.assert_allclose(*energies, rtol=1e-5)


@pytest.mark.parametrize("weighted", [False, True])
def test_learns_what_the_processor_learns(rows: Any, weighted: bool) -> None:
    weight = np.random.default_rng(1).integers(0, 3, len(rows)) if weighted else None
    expected = mixture(None, search="exact").fit(rows, sample_weight=weight)
    own = mixture().fit(rows, sample_weight=weight)
    assert_close(own, expected)
    np.testing.assert_allclose(own.score_samples(rows), expected.score_samples(rows), atol=1e-2)
    np.testing.assert_array_equal(own.predict(rows), expected.predict(rows))


def test_chooses_the_same_parameters(rows: Any) -> None:
    own, expected = (mixture(e, n_components="auto", row_sum="auto").fit(rows) for e in (CPU, None))
    assert (own.n_components_, own.row_sum_) == (expected.n_components_, expected.row_sum_)


def test_equal_runs_have_equal_bits(rows: Any) -> None:
    one, other = (mixture().fit(rows) for _ in range(2))
    np.testing.assert_array_equal(one.means_, other.means_)
    assert one.lower_bound_ == other.lower_bound_
    np.testing.assert_array_equal(one.score_samples(rows), other.score_samples(rows))


class Foreign:
    """A tensor of another library, known by DLPack alone."""

    def __init__(self, tensor: Any, device: int = 1) -> None:
        self._tensor, self._device = tensor, device
        self.shape = tuple(tensor.shape)

    def __dlpack__(self, **options: Any) -> Any:
        return self._tensor.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._device, 0


@pytest.mark.parametrize("wrapped", [False, True])
@pytest.mark.parametrize("dtype", ["uint8", "float32", "float64", "int32"])
def test_tensors_are_rows(rows: Any, dtype: str, wrapped: bool) -> None:
    rows[7] = 0
    tensor = torch.from_numpy(rows).to(getattr(torch, dtype))
    given = Foreign(tensor) if wrapped else tensor
    with pytest.warns(UserWarning, match="all zero"):
        own = mixture().fit(given)
    with pytest.warns(UserWarning, match="all zero"):
        expected = mixture().fit(rows)
    assert_close(own, expected)
    np.testing.assert_allclose(own.score_samples(given), own.score_samples(rows), atol=1e-3)
    assert tensor[7].sum() == 0  # not overwritten


def test_tensors_are_not_copied_through_the_host(rows: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    tensor, copied = torch.from_numpy(rows), []

    def array(self: Device, one: Any) -> Any:
        copied.append(tuple(one.shape))
        return one.numpy()

    monkeypatch.setattr(Device, "array", array)
    own = mixture().fit(tensor)
    own.predict(tensor)
    assert (
        max(shape[0] for shape in copied if len(shape) == 2 and shape[1] == rows.shape[1]) <= 30
    )  # those of the start
    assert Device("cpu").tensor(tensor).data_ptr() == tensor.data_ptr()
    assert Device("cpu").tensor(Foreign(tensor)).data_ptr() == tensor.data_ptr()


def test_tensors_on_the_processor_need_no_pytorch(rows: Any) -> None:
    tensor = torch.from_numpy(rows)
    one, other = (mixture(None).fit(X) for X in (tensor, rows))
    np.testing.assert_array_equal(one.means_, other.means_)
    np.testing.assert_array_equal(one.predict(tensor), other.predict(rows))


def test_a_tensor_on_a_gpu_is_never_copied_silently(rows: Any) -> None:
    on_gpu = Foreign(torch.from_numpy(rows), device=2)
    with pytest.raises(InvalidDataError, match="Torch"):
        mixture(None).fit(on_gpu)
    with pytest.raises(InvalidDataError, match="Torch"):
        mixture(None).fit(rows).predict(on_gpu)


@pytest.mark.parametrize("value", [-1.0, np.nan, np.inf])
def test_tensors_are_checked(rows: Any, value: float) -> None:
    tensor = torch.from_numpy(rows).float()
    tensor[3, 3] = value
    with pytest.raises(InvalidDataError, match="negative values"):
        mixture().fit(tensor)
    with pytest.raises(ValueError, match="features"):
        mixture().fit(rows).predict(torch.ones(3, 4))
    with pytest.raises(ValueError, match=r"1D|2D"):
        mixture().fit(torch.ones(3))


def test_extreme_tensors(rows: Any) -> None:
    scaled = rows.astype(np.float32)
    scaled[::2] *= np.float32(1e33)
    scaled[1::5] *= np.float32(1e-33)
    own, expected = normalize(torch.from_numpy(scaled), 150.0), normalize(scaled, 150.0)
    np.testing.assert_allclose(own.x.numpy() * own.scale[:, None], expected.above(), rtol=1e-5)
    with pytest.raises(InvalidDataError, match="infinity"):
        mixture().fit(torch.full((40, 2), 1e300, dtype=torch.float64))


def test_devices_without_double(rows: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sums are in single precision on Apple's devices."""
    expected = mixture().fit(rows)
    monkeypatch.setattr(Device, "sum_type", np.float32)
    own = mixture().fit(rows)
    assert_close(own, expected)
    np.testing.assert_allclose(own.score_samples(torch.from_numpy(rows)), expected.score_samples(rows), atol=1e-2)
    with pytest.raises(InvalidDataError, match="overflows"):
        mixture().fit(torch.full((40, 2), 3e38))


def test_rows_in_a_file(rows: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    np.save(tmp_path / "rows.npy", rows)
    monkeypatch.setattr("tnesi.estimators.blocks.IN_MEMORY", 100)
    mapped = np.load(tmp_path / "rows.npy", mmap_mode="r")
    assert reading.is_out_of_core(mapped)
    own, expected = mixture().fit(mapped), mixture().fit(rows)
    np.testing.assert_array_equal(own.means_, expected.means_)
    np.testing.assert_array_equal(own.predict(mapped), expected.predict(rows))


def test_a_fit_can_be_resumed(rows: Any, tmp_path: Path) -> None:
    mixture(replace(CPU, checkpoint=tmp_path), max_iter=2).fit(rows)
    resumed = mixture(replace(CPU, checkpoint=tmp_path, resume=True)).fit(rows)
    whole = mixture(replace(CPU, checkpoint=tmp_path / "other")).fit(rows)
    np.testing.assert_array_equal(resumed.means_, whole.means_)
    with pytest.raises(ValueError, match="different device"):
        mixture(Local(checkpoint=tmp_path, resume=True), search="exact").fit(rows)


def test_the_device_is_recorded(rows: Any, tmp_path: Path) -> None:
    own = mixture().fit(rows)
    assert {record["device"] for record in own.history_} == {"cpu"}
    assert {record["search"] for record in own.history_} == {"exact"}
    assert "device" not in mixture(None).fit(rows).history_[0]
    save(own, tmp_path / "model.tnesi")
    loaded = load(tmp_path / "model.tnesi")
    assert loaded.history_[0]["device"] == "cpu"
    assert loaded.execution is None  # predicts on the processor unless asked again
    np.testing.assert_array_equal(loaded.predict(rows), own.predict(rows))
    np.testing.assert_array_equal(loaded.set_params(execution=CPU).score_samples(rows), own.score_samples(rows))


def test_classifier(rows: Any) -> None:
    labels = np.full(len(rows), -1)
    labels[:60] = mixture(None, n_components=3).fit(rows).predict(rows)[:60]
    tensor = torch.from_numpy(rows)
    own, expected = (
        SimpletronClassifier(mixture(e, search="exact"), random_state=0).fit(X, labels)
        for e, X in ((CPU, tensor), (None, rows))
    )
    assert np.mean(own.predict(tensor) == expected.predict(rows)) > 0.98
    np.testing.assert_allclose(own.predict_proba(tensor), own.predict_proba(rows), atol=1e-4)
    own.fit_labels(labels)
    assert own.mixtures_[0].history_[0]["device"] == "cpu"


@pytest.mark.parametrize("recurrent", [False, True])
def test_networks(rows: Any, recurrent: bool) -> None:
    """The prior of a recurrent network acts on the device."""
    labels = np.arange(len(rows)) % 3
    labels[100:] = -1
    networks = [
        NeuralSimpletron(
            30, row_sum=150.0, recurrent=recurrent, rule=EM(max_iter=4, tol=0.0), execution=e, random_state=0, n_jobs=1
        ).fit(rows, labels)
        for e in (CPU, None)
    ]
    own, expected = (network.predict_proba(rows) for network in networks)
    assert np.mean(np.abs(own - expected) > 1e-2) < 0.02


@pytest.mark.parametrize("recurrent", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_online_rule(rows: Any, recurrent: bool, weighted: bool) -> None:
    """The same mini-batches have the same effects, for a while."""
    labels, weight = np.arange(len(rows)) % 3, np.random.default_rng(1).integers(1, 3, len(rows)) if weighted else None
    labels[100:] = -1
    rule = OnlineRule(max_iter=2, learning_rate=0.5)
    settings: dict[str, Any] = {"row_sum": 150.0, "truncation": 5, "random_state": 0, "n_jobs": 1}
    own, same, expected = (
        NeuralSimpletron(30, recurrent=recurrent, rule=rule, execution=e, **settings).fit(X, labels, weight)
        for e, X in ((CPU, torch.from_numpy(rows)), (CPU, rows), (None, rows))
    )
    assert_close(own.mixtures_[0], expected.mixtures_[0])
    np.testing.assert_array_equal(own.mixtures_[0].means_, same.mixtures_[0].means_)
    np.testing.assert_allclose(own.predict_proba(rows), expected.predict_proba(rows), atol=1e-2)
    assert own.mixtures_[0].history_[0]["device"] == "cpu"


class OwnMemory(Device):
    """The processor, with memory of its own: as on a GPU, arrays and tensors only have the same values by copies."""

    def tensor(self, array: Any) -> Any:
        return array if isinstance(array, torch.Tensor) else super().tensor(array).clone()

    def array(self, tensor: Any) -> Any:
        return super().array(tensor).copy()


@pytest.mark.parametrize("rule", [EM(max_iter=3, tol=0.0), OnlineRule(max_iter=2, learning_rate=0.5)])
@pytest.mark.parametrize("recurrent", [False, True])
def test_a_device_with_its_own_memory(
    rows: Any, rule: EM | OnlineRule, recurrent: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    labels = np.arange(len(rows)) % 3
    settings: dict[str, Any] = {"row_sum": 150.0, "truncation": 5, "random_state": 0, "n_jobs": 1}
    network = NeuralSimpletron(30, recurrent=recurrent, rule=rule, execution=CPU, **settings)
    shared = clone(network).fit(rows, labels)
    monkeypatch.setattr("tnesi.execution.device_engine.find_device", lambda *_, **__: OwnMemory("cpu", True))
    own = network.fit(rows, labels)
    np.testing.assert_array_equal(own.mixtures_[0].means_, shared.mixtures_[0].means_)
    np.testing.assert_array_equal(own.predict_proba(rows), shared.predict_proba(rows))
    energies = [[record["free_energy"] for record in each.mixtures_[0].history_] for each in (own, shared)]
    assert energies[0] == energies[1]


def test_moments_of_tensors(rows: Any) -> None:
    weight = np.random.default_rng(1).integers(1, 3, len(rows)).astype(np.float32)
    for w in (None, weight):
        own, expected = normalize(torch.from_numpy(rows), 150.0).moments(w), normalize(rows, 150.0).moments(w)
        np.testing.assert_allclose(own, expected, rtol=1e-6)


def test_partial_e_steps_are_an_error(rows: Any) -> None:
    network = NeuralSimpletron(30, truncation=5, rule=OnlineRule(max_iter=2, e_step="partial"), execution=CPU)
    with pytest.raises(InvalidParameterError, match="e_step='exact'"):
        network.fit(rows, np.arange(len(rows)) % 3)


def test_sparse_rows_are_an_error(rows: Any) -> None:
    with pytest.raises(InvalidDataError, match="sparse"):
        mixture().fit(csr_array(rows))
    with pytest.raises(InvalidDataError, match="sparse"):
        mixture().fit(rows).predict(csr_array(rows))


def test_no_truncation_is_an_error() -> None:
    rows = np.random.default_rng(0).integers(0, 9, (700, 8))
    with pytest.raises(InvalidParameterError, match="truncation=15"):
        mixture(n_components=520, truncation=None).fit(rows)
    full = mixture(None, n_components=520, truncation=None, max_iter=1).fit(rows)
    with pytest.raises(InvalidParameterError, match="truncation"):
        full.set_params(execution=CPU).predict(rows)


def test_without_pytorch(rows: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The default needs none; a request says what to install."""

    class NotInstalled:
        def find_spec(self, name: str, *_: Any) -> None:
            if name == "torch":
                raise ModuleNotFoundError("No module named 'torch'")

    monkeypatch.delitem(sys.modules, "torch")
    monkeypatch.setattr(sys, "meta_path", [NotInstalled(), *sys.meta_path])
    fitted = mixture(None).fit(rows)
    fitted.predict(rows)
    with pytest.raises(DeviceError, match=r"pip install 'tnesi\[torch\]'"):
        mixture().fit(rows)
    with pytest.raises(DeviceError, match="pip install"):
        fitted.set_params(execution=CPU).predict(rows)


@pytest.mark.parametrize("name", ["gpu", "cuda:x", "", "cuda:", None])
def test_device_names_are_checked(rows: Any, name: Any) -> None:
    with pytest.raises(InvalidParameterError, match="device"):
        mixture(Torch(name)).fit(rows)


def test_devices_that_are_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    assert find_device("auto").name == "cpu"
    for name in ("cuda", "cuda:0", "mps"):
        with pytest.raises(DeviceError, match=f"no device '{name}'.*'cpu'"):
            find_device(name)


def test_devices_that_claim_to_be_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 1)
    assert [find_device(name).name for name in ("auto", "cuda", "cuda:0", "cpu")] == [
        "cuda:1",
        "cuda:1",
        "cuda:0",
        "cpu",
    ]
    with pytest.raises(DeviceError, match="'cuda:0', 'cuda:1'"):
        find_device("cuda:2")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    assert find_device("auto").name == "mps"
    with pytest.raises(DeviceError, match="deterministic"):
        find_device("auto", deterministic=True)


@pytest.mark.parametrize("error", [torch.OutOfMemoryError("full"), RuntimeError("MPS backend out of memory")])
def test_lack_of_memory(rows: Any, error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise error

    settings = torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()
    own = mixture().fit(rows)
    before = own.means_
    monkeypatch.setattr(tensors, "add_statistics", fail)
    with pytest.raises(DeviceMemoryError, match="memory of cpu is full: use fewer fields"):
        own.fit(rows)
    np.testing.assert_array_equal(own.means_, before)
    assert settings == (torch.get_num_threads(), torch.are_deterministic_algorithms_enabled())


def test_settings_of_pytorch_are_restored() -> None:
    before = torch.get_num_threads(), torch.get_float32_matmul_precision()
    with Device("cpu", deterministic=True).running(1):
        assert torch.get_num_threads() == 1
        assert torch.are_deterministic_algorithms_enabled()
        assert torch.get_float32_matmul_precision() == "highest"
    assert (torch.get_num_threads(), torch.get_float32_matmul_precision()) == before
    assert not torch.are_deterministic_algorithms_enabled()


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("on_gpu", [False, True])
def test_an_engine_never_mixes_devices(rows: Any, weighted: bool, on_gpu: bool) -> None:
    """On a GPU without values: a pass, an M-step, resuming, the survey and predictions."""
    weight = np.ones(len(rows), np.float32) if weighted else None
    given, sums = normalize(rows, 150.0), rows.sum(axis=1).astype(float)
    fields = Fields.from_weights(given.take(np.arange(30)).y())
    prior = Prior(np.zeros((3, 30), np.float32), np.zeros(len(rows), np.int32))
    shrinkage = Shrinkage(np.ones(rows.shape[1], np.float32), 1.0)
    device, search = FakeDevice("cuda"), ExactSearch(5, 1)
    with fake_gpu():
        store = TensorStore(device.tensor(rows)) if on_gpu else ArrayStore(rows)
        engine = DeviceEngine(store, sums, weight, device, 1)
        if on_gpu:
            assert len(engine.survey(0).hashes) == len(rows)
        engine.normalize(150.0)
        engine.begin(fields, search, prior)
        new = engine.m_step(fields, shrinkage, None)
        engine.step(new, search, None)
        engine.resume(new, search, engine.activities)
        search_there, there = DeviceSearch(5, 1, device=device), DeviceFields.of(new, device)
        assert len(search_there.find(fields, given, prior)) == len(rows)
        batch = given.take(slice(25))
        there.hebbian_step(batch, None if weight is None else weight[:25], search_there.find(there, batch), 0.1, 1)
        assert len(there.on_host()) == 30
