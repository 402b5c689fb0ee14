"""Checkpoints: the state of a fit after each iteration, from which a killed fit resumes with bitwise equal results.

Each mixture has one file, safetensors with a JSON header, which is replaced atomically. Values that follow from the
data (sums, constants, statistics of the rows) are not stored but recomputed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from tnesi import kernels
from tnesi.errors import TnesiError
from tnesi.model.activities import Activities
from tnesi.model.fields import Fields
from tnesi.search import NeighborSearch, Search
from tnesi.search.neighbors import ALL_BELOW
from tnesi.system.files import InUseError, alone_in, replacing
from tnesi.system.tensors import read_state, write_state
from tnesi.training.monitor import Monitor
from tnesi.types import Array

FORMAT = 3
_ENTRY = "tnesi checkpoint"
_MOST = 1e300  # JSON has no infinity
_FIELDS = ("w", "log_w", "log_w_sum", "w_sum")
_RECORD = ("iteration", "free_energy", "changed", "seconds")
_ACTIVITIES = ("ids", "s", "log_sum")


class CheckpointError(TnesiError, ValueError):
    """A checkpoint that a fit cannot use."""


@dataclass
class Checkpoint:
    """The file with the state of a mixture.

    Attributes
    ----------
    path : Path
    resume : bool
        Whether to resume from an existing file.
    identity : dict
        Parameters and a digest of the data, which must match to resume.
    """

    path: Path
    resume: bool
    identity: dict[str, Any] = field(default_factory=dict)

    def save(self, fields: Fields, activities: Activities, search: Search, monitor: Monitor, *, stopped: bool) -> None:
        """Save the state after an iteration."""
        arrays = {name: getattr(fields, name) for name in _FIELDS}
        arrays |= {name: np.asarray(getattr(activities, name)) for name in _ACTIVITIES}
        age = 0
        if search.lists is not None:
            arrays["lists"], age = search.lists, search.age
        header = {
            "format": FORMAT,
            "identity": self.identity,
            "history": monitor.history,
            "objective": monitor.objective,
            "gain": min(monitor.gain, _MOST),
            "stopped": stopped,
            "age": age,
        }
        write_state(self.path, _ENTRY, json.dumps(header, default=_plain), arrays, sync=False)

    def load(self, search: Search, monitor: Monitor) -> tuple[Fields, Activities, bool] | None:
        """Restore search and monitor; return fields, activities and whether learning has ended, or None."""
        if not self.resume or not self.path.exists():
            return None
        header, arrays = self._read()
        if header["identity"] != self.identity:
            other = [name for name, value in self.identity.items() if header["identity"].get(name) != value]
            raise CheckpointError(
                "{path} belongs to a fit with different {other}",
                path=self.path,
                other=", ".join(other) or "parameters",
                parameter="checkpoint",
                advice="pass the original values, or another folder as {checkpoint}",
            )
        if "lists" in arrays:
            search.lists, search.age = arrays["lists"], header["age"]
        ended = monitor.restore(header["history"], header["objective"], header["gain"], stopped=header["stopped"])
        fields = Fields(*(arrays[name] for name in _FIELDS))
        return fields, Activities(*(arrays[name] for name in _ACTIVITIES)), ended

    def _read(self) -> tuple[dict[str, Any], dict[str, Array]]:
        try:
            state = read_state(self.path, _ENTRY)
            header: dict[str, Any] = json.loads(state.text)
            if header["format"] != FORMAT:
                raise CheckpointError(
                    "{path} was written by another version of tnesi",
                    path=self.path,
                    advice="start over without {resume}",
                )
            state.check()
            self._check(header, state.arrays)
        except CheckpointError:
            raise
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError, OSError) as error:
            raise CheckpointError(
                "{path} is damaged or not a checkpoint ({reason})",
                path=self.path,
                reason=error,
                advice="start over without {resume}",
            ) from error
        return header, state.arrays

    def _check(self, header: dict[str, Any], arrays: dict[str, Array]) -> None:
        n_fields, n_features = arrays["w"].shape
        n, width = arrays["ids"].shape
        shapes = {
            "w": (n_fields, n_features),
            "log_w": (n_fields, kernels.padded(n_features)),
            "log_w_sum": (n_fields,),
            "w_sum": (n_fields,),
            "ids": (n, width),
            "s": (n, width),
            "log_sum": (n,),
        }
        fits = all(arrays[name].shape == shape for name, shape in shapes.items())
        fits = fits and all(arrays[name].dtype == (np.int32 if name == "ids" else np.float32) for name in shapes)
        identity, numbers = header["identity"], [header["objective"], header["gain"], header["age"]]
        fits = fits and (identity["rows"], identity["features"], identity["n_components"]) == (n, n_features, n_fields)
        fits = fits and width == identity["truncation"] and width > 0
        has_lists = identity["search"] == NeighborSearch.name and n_fields > ALL_BELOW
        fits = fits and ("lists" in arrays) == has_lists
        if has_lists:
            lists = arrays["lists"]
            fits = fits and lists.dtype == np.int32 and lists.ndim == 2 and len(lists) == n_fields and lists.size > 0
        fits = fits and isinstance(header["stopped"], bool) and all(isinstance(one, int | float) for one in numbers)
        fits = fits and all(isinstance(entry[name], int | float) for entry in header["history"] for name in _RECORD)
        if not fits or not header["history"]:
            raise ValueError("its parts are inconsistent")


@contextmanager
def lock_checkpoints(folder: str | PathLike[str] | None) -> Iterator[None]:
    """Lock the folder of a fit, and delete temporary files of a killed one."""
    if folder is None:
        yield
        return
    place = Path(folder)
    try:
        with alone_in(place, wait=False):
            for part in [*place.glob(".mixture-*.state.*.part"), *place.glob(".seeds.json.*.part")]:
                with suppress(OSError):
                    part.unlink()
            yield
    except InUseError:
        raise CheckpointError(
            "another fit uses {place}", place=place, advice="wait for it, or pass another folder as {checkpoint}"
        ) from None
    except (FileExistsError, NotADirectoryError):
        if place.is_dir():
            raise
        raise CheckpointError(
            "{place} is a file, not a folder",
            place=place,
            parameter="checkpoint",
            advice="pass a folder as {checkpoint}",
        ) from None


def resumed_seeds(folder: str | PathLike[str] | None, seeds: list[int], *, resume: bool) -> list[int]:
    """Return the seeds stored in a folder, or store `seeds` and return them."""
    if folder is None:
        return seeds
    path = Path(folder) / "seeds.json"
    if resume and path.exists():
        try:
            stored = [int(seed) for seed in json.loads(path.read_text())]
            if not all(0 <= seed < 2**31 for seed in stored):
                raise ValueError("a seed is out of range")
        except (ValueError, TypeError, OverflowError, RecursionError) as error:
            raise CheckpointError(
                "{path} is damaged ({reason})", path=path, reason=error, advice="start over without {resume}"
            ) from error
        if len(stored) == len(seeds):
            return stored
        raise CheckpointError(
            "{folder} belongs to a fit with a different number of mixtures",
            folder=folder,
            parameter="checkpoint",
            advice="pass another folder as {checkpoint}",
        )
    for state in path.parent.glob("mixture-*.state"):
        state.unlink()  # from an earlier fit with other seeds
    with replacing(path) as temporary:
        temporary.write_text(json.dumps(seeds))
    return seeds


def _plain(value: object) -> Any:
    """Convert values that a callback has added to the history."""
    return value.item() if isinstance(value, np.generic) else str(value)
