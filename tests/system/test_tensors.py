"""Files of arrays and texts: the same content in files and in memory, and damage that is noticed."""

from __future__ import annotations

import json
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest

from tnesi.system.tensors import open_tensors, read_state, write_state, write_tensors

ARRAYS = {"w": np.arange(6, dtype=np.float32).reshape(2, 3), "n": np.array([1, -2], np.int32)}


def test_files_and_file_objects_hold_the_same_bytes(tmp_path: Path) -> None:
    path, content = tmp_path / "a.state", BytesIO()
    write_tensors(path, ARRAYS, {"note": "text"})
    write_tensors(content, ARRAYS, {"note": "text"})
    assert path.read_bytes() == content.getvalue()
    for source in (path, BytesIO(content.getvalue())):
        with open_tensors(source) as file:
            assert file.metadata == {"note": "text"}
            assert file.described == {"w": ("F32", (2, 3)), "n": ("I32", (2,))}
            for name, array in file.arrays().items():
                np.testing.assert_array_equal(array, ARRAYS[name])


@pytest.mark.parametrize("in_memory", [False, True])
@pytest.mark.parametrize("kind", ["BF16", "F8_E4M3"])
def test_types_that_numpy_does_not_have(tmp_path: Path, kind: str, in_memory: bool) -> None:
    n = 2 if kind == "BF16" else 1
    header = json.dumps({"a": {"dtype": kind, "shape": [1], "data_offsets": [0, n]}}).encode()
    path = tmp_path / "a.state"
    path.write_bytes(len(header).to_bytes(8, "little") + header + bytes(n))
    with (
        open_tensors(BytesIO(path.read_bytes()) if in_memory else path) as file,
        pytest.raises(ValueError, match="type that NumPy does not have"),
    ):
        file.arrays()


def test_a_state_with_a_checksum(tmp_path: Path) -> None:
    path = tmp_path / "a.state"
    checksum = write_state(path, "entry", "text", ARRAYS)
    state = read_state(path, "entry")
    assert (state.text, state.checksum) == ("text", checksum)
    state.check()
    with pytest.raises(ValueError, match="checksum"):
        state._replace(text="other").check()
    with pytest.raises(ValueError, match="checksum"):
        state._replace(arrays=state.arrays | {"n": state.arrays["n"] + 1}).check()
    with pytest.raises(KeyError):
        read_state(path, "another entry")
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ValueError, match=r"(?i)incomplete|buffer"):
        read_state(path, "entry")
