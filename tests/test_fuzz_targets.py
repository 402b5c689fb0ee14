"""The readers that `make fuzz` fuzzes accept its seeds, and accept or refuse what is near them."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytestmark = pytest.mark.slow
TARGETS: dict[str, Any] = runpy.run_path(str(Path(__file__).parents[1] / "fuzz" / "targets.py"))["TARGETS"]


@pytest.mark.parametrize("name", TARGETS)
def test_seeds_and_their_neighbors(name: str, tmp_path: Path, rng: np.random.Generator) -> None:
    target = TARGETS[name]
    (tmp_path / "seeds").mkdir()
    seeds = list(target.seeds(tmp_path / "seeds"))
    numbers = iter(range(sys.maxsize))

    def accepts(data: bytes) -> bool:
        folder = tmp_path / str(next(numbers))
        folder.mkdir()
        return bool(target.accepts(data, folder))

    assert all(accepts(seed) for seed in seeds)
    for seed in seeds:
        for _ in range(5):
            changed = bytearray(seed)
            changed[rng.integers(len(seed))] = rng.integers(256)
            accepts(bytes(changed))
        accepts(seed[: rng.integers(len(seed))])
