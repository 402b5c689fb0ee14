"""Figures of the report, each drawn small enough to be read on a phone."""
