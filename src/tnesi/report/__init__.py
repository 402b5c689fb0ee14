"""Plots of models and the report page of a reproduction; needs ``pip install 'tnesi[plot]'``."""

from tnesi.report.fields import plot_fields, plot_rows
from tnesi.report.reliability import plot_reliability

__all__ = ["plot_fields", "plot_reliability", "plot_rows"]
