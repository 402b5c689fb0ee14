"""Devices of PyTorch, which is imported only when one is requested."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import issparse

from tnesi.errors import InvalidDataError, TnesiError
from tnesi.types import Array

if TYPE_CHECKING:
    from torch import Tensor

KINDS = ("cuda", "mps", "cpu")
"""In order of preference. ROCm calls its devices "cuda", too."""
_HOST_MEMORY = {1, 3, 11}
"""DLPack's numbers of memory that the processor can read: its own, and that pinned for CUDA or ROCm."""
_LACK_OF_MEMORY = ("out of memory", "not enough memory", "can't allocate memory")
"""Texts of PyTorch's errors on devices that have no exception class for this."""


class DeviceError(TnesiError, RuntimeError):
    """A device that is missing, or cannot do what was requested."""


class DeviceMemoryError(DeviceError, MemoryError):
    """The memory of a device is too small."""


@dataclass(frozen=True)
class Device:
    """A device of PyTorch.

    Attributes
    ----------
    name : str
        "cpu", "mps", or "cuda:0" with the number of the GPU.
    deterministic : bool
        Whether equal runs have equal bits.
    """

    name: str
    deterministic: bool = False

    def tensor(self, array: Any) -> Tensor:
        """Return an array, or a tensor of any library, as a tensor on this device; without a copy if it is there."""
        import torch

        if issparse(array):
            raise InvalidDataError(
                "sparse rows are not supported on {name}",
                parameter="X",
                name=self.name,
                advice="pass no {execution}, or X.toarray() if that fits into memory",
            )
        if isinstance(array, np.ndarray):
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", "The given NumPy array is not writable")  # it is only read
                array = torch.from_numpy(array)
        elif not isinstance(array, torch.Tensor):
            array = torch.from_dlpack(array)
        return array.detach().to(self.name)

    def array(self, tensor: Tensor) -> Array:
        """Return a tensor as a NumPy array."""
        return np.asarray(tensor.cpu().numpy())

    @property
    def sum_type(self) -> type[np.floating[Any]]:
        """The type of long sums: double, where the device has it."""
        return np.float32 if self.name == "mps" else np.float64

    @contextmanager
    def running(self, n_threads: int) -> Iterator[None]:
        """Set PyTorch up for computations on this device, and translate its errors."""
        import torch

        if self.deterministic and self.name.startswith("cuda"):
            os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
        threads, precision = torch.get_num_threads(), torch.get_float32_matmul_precision()
        strict = torch.are_deterministic_algorithms_enabled()
        only_warns = torch.is_deterministic_algorithms_warn_only_enabled()
        try:
            torch.set_num_threads(n_threads)
            torch.set_float32_matmul_precision("highest")
            if self.deterministic:
                torch.use_deterministic_algorithms(True)
            with torch.no_grad():
                yield
        except (MemoryError, RuntimeError) as error:
            if isinstance(error, DeviceError) or not _is_lack_of_memory(error):
                raise
            raise DeviceMemoryError(
                f"the memory of {self.name} is full",
                advice="use fewer fields or rows, read the rows in blocks (tnesi.data.open_data, or a mapped array), "
                "close other programs that use the device, or pass {execution:None}",
                parameter="execution",
            ) from error
        finally:
            torch.set_num_threads(threads)
            torch.set_float32_matmul_precision(precision)
            torch.use_deterministic_algorithms(strict, warn_only=only_warns)


def _is_lack_of_memory(error: BaseException) -> bool:
    import torch

    kinds = (MemoryError, torch.OutOfMemoryError)
    return isinstance(error, kinds) or any(text in str(error) for text in _LACK_OF_MEMORY)


def find_device(name: str, *, deterministic: bool = False) -> Device:
    """Return the device with a name such as "cuda", "cuda:1", "mps" or "cpu"; "auto" is the first of these here."""
    try:
        import torch
    except (ImportError, OSError) as error:
        raise DeviceError(
            "{execution} asks for PyTorch, which cannot be imported ({reason})",
            reason=error,
            parameter="execution",
            advice="pip install 'tnesi[torch]', or see pytorch.org for the build that suits your GPU",
        ) from error
    n_gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
    present = {"cuda": n_gpus, "mps": int(torch.backends.mps.is_available()), "cpu": 1}
    if name == "auto":
        name = next(kind for kind in KINDS if present[kind])
    kind, _, number = name.partition(":")
    if int(number or 0) >= present[kind]:
        found = [f"cuda:{i}" for i in range(n_gpus)] + [kind for kind in KINDS[1:] if present[kind]]
        raise DeviceError(
            "PyTorch {version} has no device {name!r} here",
            version=torch.__version__,
            name=name,
            parameter="execution",
            advice="pass one of {found}, or 'auto'; a GPU needs its driver and a build of PyTorch for it",
            found=", ".join(map(repr, found)),
        )
    if kind == "mps" and deterministic:
        raise DeviceError(
            "PyTorch cannot make sums on mps deterministic", parameter="execution", advice="pass {deterministic:False}"
        )
    if kind == "cuda":
        name = f"cuda:{number or torch.cuda.current_device()}"
    return Device(name, deterministic)


def is_tensor(X: Any) -> bool:
    """Return whether data are an array of another library than NumPy: PyTorch, CuPy, JAX."""
    return hasattr(X, "__dlpack_device__") and not isinstance(X, np.ndarray | np.generic)


def on_host(X: Any) -> Array:
    """Return a tensor in the memory of the processor as an array."""
    if int(X.__dlpack_device__()[0]) not in _HOST_MEMORY:
        raise InvalidDataError(
            "X is on a device, but this runs on the processor",
            parameter="X",
            advice="pass execution=tnesi.execution.Torch() to learn and predict there, or copy X to the processor",
        )
    return np.from_dlpack(X)


def device_of(tensor: Tensor) -> Device:
    """Return the device of a tensor."""
    return Device(str(tensor.device))
