"""Model files with arbitrary content and a valid checksum."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import save_file

from tnesi.model_file.checksum import checksum

Write = Callable[[Path, str, dict[str, Any]], None]


@pytest.fixture(scope="session")
def write_model() -> Write:
    """Write a model file with the given header and arrays."""

    def write(path: Path, text: str, arrays: dict[str, Any]) -> None:
        arrays = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
        save_file(arrays, path)
        with safe_open(path, framework="np") as file:
            parts = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118
            described = {name: (part.get_dtype(), tuple(part.get_shape())) for name, part in parts.items()}
        save_file(arrays, path, metadata={"tnesi": text, "checksum": checksum(text, described, arrays)})

    return write


@pytest.fixture(scope="session")
def damaged(write_model: Write) -> Callable[..., Path]:
    """Copy a model file to damaged.tnesi in a folder, with changes of its header and arrays."""

    def write(sound: Path, folder: Path, damage: Callable[[dict[str, Any], dict[str, Any]], Any]) -> Path:
        with safe_open(sound, framework="np") as file:
            header = json.loads(file.metadata()["tnesi"])
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        damage(header, arrays)
        write_model(folder / "damaged.tnesi", json.dumps(header), arrays)
        return folder / "damaged.tnesi"

    return write
