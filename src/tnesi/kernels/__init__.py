"""The hot loops, in two implementations: native (C++) and :mod:`tnesi.kernels.reference` (NumPy, the test oracle).

Kernels are pure functions over arrays that the caller owns; ``native/kernels.h`` and the reference document the arrays.
The native kernels are the default where they are installed, with the widest instruction set of the processor. The
environment variable ``TNESI_KERNELS`` selects an implementation: ``native``, ``reference`` (or ``numpy``), or native
with a given instruction set: ``baseline`` (every processor), ``avx2`` or ``avx512``. :mod:`tnesi.kernels.tensors` has
those kernels that run on a GPU; :class:`tnesi.execution.Torch` requests them.
"""

from __future__ import annotations

import os
import warnings
from typing import TYPE_CHECKING

from tnesi.kernels.reference import Given as Given

if TYPE_CHECKING:
    from tnesi.kernels import reference as _backend
else:
    _INSTRUCTION_SETS = ("baseline", "avx2", "avx512")
    _choice = os.environ.get("TNESI_KERNELS", "")
    if _choice not in ("", "native", "reference", "numpy", *_INSTRUCTION_SETS):
        raise ImportError(
            f"TNESI_KERNELS={_choice!r}: use 'native', 'reference' (or 'numpy'), 'baseline', 'avx2' or 'avx512', "
            "or unset it"
        )
    if _choice in ("reference", "numpy"):
        from tnesi.kernels import reference as _backend
    else:
        try:
            from tnesi.kernels import _native as _backend
        except ImportError:
            if _choice:
                raise
            from tnesi.kernels import reference as _backend

            warnings.warn(
                "tnesi uses its NumPy kernels, which are many times slower than the native ones: it was installed "
                "without a C++ compiler. Install GCC or Clang, then reinstall tnesi; or set "
                "TNESI_KERNELS=reference to silence this warning.",
                RuntimeWarning,
                stacklevel=2,
            )
        if _choice in _INSTRUCTION_SETS:
            _found = _backend.instruction_sets()
            if _choice not in _found:
                raise ImportError(
                    f"TNESI_KERNELS={_choice!r}: this processor does not support these kernels; use one of "
                    f"{', '.join(_found)}, or unset it"
                )
            _backend.use_instruction_set(_choice)

NATIVE: bool = _backend.__name__.endswith("_native")
FORCED: bool = bool(os.environ.get("TNESI_KERNELS"))
BLOCK = 16
"""Rows of log W and of R are padded with zeros to a multiple of this."""

add_statistics = _backend.add_statistics
build_lists = _backend.build_lists
color_histograms = _backend.color_histograms
finish_m_step = _backend.finish_m_step
hebbian_step = _backend.hebbian_step
learn_classes = _backend.learn_classes
learn_online = _backend.learn_online
log_factorials = _backend.log_factorials
m_step = _backend.m_step
oriented_gradients = _backend.oriented_gradients
products = _backend.products
row_hashes = _backend.row_hashes
search_all = _backend.search_all
search_groups = _backend.search_groups
select_top = _backend.select_top
spread = _backend.spread


def padded(n: int) -> int:
    """Return `n` rounded up to a multiple of :data:`BLOCK`."""
    return -(-n // BLOCK) * BLOCK
