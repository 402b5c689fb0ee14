"""A GPU without a GPU: tensors on "cuda" that have shapes and types, but no values."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from tnesi.system.devices import Device

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
from torch._subclasses.fake_tensor import FakeTensorMode  # noqa: E402 - only with PyTorch
from torch.overrides import TorchFunctionMode  # noqa: E402


@contextmanager
def fake_gpu() -> Iterator[None]:
    """Compute with fake tensors; an operation on tensors of different devices is an error."""
    with FakeTensorMode(), _WithoutDriver():
        yield


class _WithoutDriver(TorchFunctionMode):
    """Replaces the operations for which PyTorch calls a driver, even for fake tensors.

    `copy_` in PyTorch also copies between devices; here that is an error, since no kernel should.
    """

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if function is torch.Tensor.copy_:
            return args[0].zero_().add_(args[1])
        if function is torch.Tensor.clone:
            return args[0] + 0
        if function is torch.Tensor.contiguous:
            return args[0]
        if function is torch.Tensor.__getitem__ and isinstance(args[1], slice):
            start, stop, _ = args[1].indices(len(args[0]))
            return args[0].narrow(0, start, stop - start)
        return function(*args, **kwargs or {})


class FakeDevice(Device):
    """A GPU whose memory is only reached by copies."""

    def tensor(self, array: Any) -> Any:
        if isinstance(array, torch.Tensor):
            assert array.device.type == "cuda"
            return array
        dtype = torch.from_numpy(np.empty(0, array.dtype)).dtype
        return torch.zeros(array.shape, dtype=dtype, device="cuda")

    def array(self, tensor: Any) -> Any:
        assert tensor.device.type == "cuda"
        return np.zeros(tuple(tensor.shape), str(tensor.dtype).removeprefix("torch."))
