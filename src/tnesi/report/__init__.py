"""Pictures of what was learned; needs matplotlib (``pip install tnesi[plot]``)."""

from tnesi.report.fields import plot_fields

__all__ = ["plot_fields"]
