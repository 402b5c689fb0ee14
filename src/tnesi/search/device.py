"""Exact search on a device of PyTorch, for predictions."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from tnesi.errors import InvalidParameterError
from tnesi.kernels import tensors as kernels
from tnesi.model.activities import Activities
from tnesi.model.device_fields import log_w_on
from tnesi.model.fields import Fields, Prior
from tnesi.model.mixture_model import MixtureModel
from tnesi.model.rows import Rows
from tnesi.search.base import Search
from tnesi.search.exact import FullSearch
from tnesi.system.devices import Device

_BLOCK_VALUES = 2**26


@dataclass
class DeviceSearch(Search):
    """Compare every row with all fields on a device; keep the best `truncation` = C'."""

    device: Device = field(default_factory=lambda: Device("cpu"))
    name = "exact"

    def find(self, fields: Fields, rows: Rows, prior: Prior | None = None) -> Activities:
        """Return the best C' fields of each row and their activities."""
        device, out = self.device, Activities.empty(len(rows), self.truncation)
        log_w, base = log_w_on(fields, device), device.tensor(fields.base(prior))
        for place, block in rows.blocks(max(_BLOCK_VALUES // rows.n_features, 1)):
            base_row = None if prior is None or prior.row is None else device.tensor(prior.row[place])
            x, scale = device.tensor(block.x), device.tensor(block.scale)
            ids, s, log_sum = map(device.tensor, (out.ids[place], out.s[place], out.log_sum[place]))
            kernels.search_all(x, scale, log_w, base, base_row, ids, s, log_sum, self.n_threads)
            out.put(place, Activities(device.array(ids), device.array(s), device.array(log_sum)))
        return out


def on_device(model: MixtureModel, device: Device | None) -> MixtureModel:
    """Return a model that searches on a device; None means the processor."""
    if device is None:
        return model
    if model.search.name == FullSearch.name:
        raise InvalidParameterError(
            "{execution} supports mixtures with a truncation only", parameter="execution", advice="pass no {execution}"
        )
    return replace(model, search=DeviceSearch(model.truncation, model.search.n_threads, device=device))
