"""Pictures of what was learned, and the report page of a reproduction; needs ``pip install 'tnesi[plot]'``."""

from tnesi.report.fields import plot_fields, plot_rows

__all__ = ["plot_fields", "plot_rows"]
