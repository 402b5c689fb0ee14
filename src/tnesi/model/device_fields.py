"""Fields on a device of PyTorch, which the online rule changes there in place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tnesi.kernels import tensors as kernels
from tnesi.model.activities import Activities
from tnesi.model.fields import Fields
from tnesi.model.rows import Rows
from tnesi.system.devices import Device
from tnesi.types import Array

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class DeviceFields(Fields):
    """Fields whose W and log W are up to date on the device only; both sums are so everywhere.

    Attributes
    ----------
    device : Device
    tensors : tuple of Tensor
        W, log W and their row sums.
    """

    device: Device
    tensors: tuple[Tensor, Tensor, Tensor, Tensor]

    @classmethod
    def of(cls, fields: Fields, device: Device) -> DeviceFields:
        """Return fields on a device; the given ones must not be used any more."""
        arrays = (fields.w, fields.log_w, fields.log_w_sum, fields.w_sum)
        w, log_w, log_w_sum, w_sum = map(device.tensor, arrays)
        return cls(*arrays, device, (w, log_w, log_w_sum, w_sum))

    def on_host(self) -> Fields:
        w, log_w, log_w_sum, w_sum = map(self.device.array, self.tensors)
        return Fields(w, log_w, log_w_sum, w_sum)

    def hebbian_step(
        self, rows: Rows, weight: Array | None, activities: Activities, rate: float, n_threads: int
    ) -> None:
        """W_c += rate * sum_n s_nc (y_n - W_c) (eq. 9), in place."""
        tensor = self.device.tensor
        own = None if weight is None else tensor(weight)
        x, scale, ids, s = map(tensor, (rows.x, rows.scale, activities.ids, activities.s))
        kernels.hebbian_step(x, scale, own, ids, s, rate, *self.tensors, n_threads)
        self.log_w_sum[:], self.w_sum[:] = map(self.device.array, self.tensors[2:])


def log_w_on(fields: Fields, device: Device) -> Tensor:
    """Return log W on a device."""
    return fields.tensors[1] if isinstance(fields, DeviceFields) else device.tensor(fields.log_w)
