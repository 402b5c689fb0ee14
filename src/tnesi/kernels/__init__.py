"""The few hot loops, each twice: native (C++) and :mod:`tnesi.kernels.reference` (NumPy, the oracle of the tests).

All kernels are pure functions over arrays that the caller owns; ``native/kernels.h`` and the reference say what
each array means. The native ones are used where they are installed. The environment variable ``TNESI_KERNELS``
(``native`` or ``reference``) chooses one of the two.
"""

from __future__ import annotations

import os
import warnings
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tnesi.kernels import reference as _backend
else:
    _choice = os.environ.get("TNESI_KERNELS", "")
    if _choice not in ("", "native", "reference"):
        raise ImportError(f"TNESI_KERNELS={_choice!r}: use 'native' or 'reference', or unset it")
    if _choice == "reference":
        from tnesi.kernels import reference as _backend
    else:
        try:
            from tnesi.kernels import _native as _backend
        except ImportError:
            if _choice == "native":
                raise
            from tnesi.kernels import reference as _backend

            warnings.warn(
                "tnesi runs on its NumPy kernels, many times slower than the native ones: the package was "
                "installed without a C++ compiler. Install GCC or Clang, then reinstall tnesi; or set "
                "TNESI_KERNELS=reference to accept the slow kernels silently.",
                RuntimeWarning,
                stacklevel=2,
            )

NATIVE: bool = _backend.__name__.endswith("_native")
FORCED: bool = bool(os.environ.get("TNESI_KERNELS"))
BLOCK = 16
"""Rows of log W and of R are padded with zeros to a multiple of this."""

build_lists = _backend.build_lists
hebbian_step = _backend.hebbian_step
learn_classes = _backend.learn_classes
log_factorials = _backend.log_factorials
m_step = _backend.m_step
products = _backend.products
row_hashes = _backend.row_hashes
search_groups = _backend.search_groups
select_top = _backend.select_top
spread = _backend.spread

__all__ = [
    "BLOCK",
    "FORCED",
    "NATIVE",
    "build_lists",
    "hebbian_step",
    "learn_classes",
    "log_factorials",
    "m_step",
    "padded",
    "products",
    "row_hashes",
    "search_groups",
    "select_top",
    "spread",
]


def padded(n: int) -> int:
    """Return `n` rounded up to a multiple of :data:`BLOCK`."""
    return -(-n // BLOCK) * BLOCK
